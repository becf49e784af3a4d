/* varve for C++17 and later; a header over varve.h, and nothing to link but libvarve.
 *
 *	varve::session s("ckpt", "heat", "keep=3"); a store, a lineage, options
 *	s.protect("step", step);                    numbers, trivially copyable structs, or arrays
 *	s.protect("particles", particles);          a std::vector, of any size at a checkpoint
 *	s.restart();                                fills them, with vectors as long as before
 *	for (; step < steps; step++) {
 *		if (s.due())
 *			s.checkpoint();
 *		...
 *	}
 *	s.close();
 *
 * A call that fails throws varve::error, which has the code and the words of the C interface. A
 * session made with std::nothrow does not throw. There, as in C, a failed call returns a negative
 * code, and varve_last_error() returns the reason. varve.h says which value each function returns,
 * and when it waits.
 *
 * `varve` is also the old name of C's handle. Unless VARVE_NO_OLD_NAMES is defined, the struct of
 * that name is the scope of everything here; with VARVE_NO_OLD_NAMES it is a namespace. */
#ifndef VARVE_VARVE_HPP
#define VARVE_VARVE_HPP

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif
#if defined(__STDCPP_BFLOAT16_T__) || defined(__STDCPP_FLOAT16_T__)
#include <stdfloat>
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function and a struct of one name are fine in C */
#include <varve/varve_comm.h>
#include <varve/varve_read.h>
#pragma GCC diagnostic pop

/* ---- the kinds of types ---------------------------------------------------------------------- */

namespace varve_detail {

using log_fn = std::function<void(int level, const std::string &sentence)>;

inline void log_sentence(void *log, int level, const char *sentence) noexcept { (*static_cast<log_fn *>(log))(level, sentence); }

/* The bits of a small number. protect("w", reinterpret_cast<varve::bf16 *>(p), {n}) declares those
 * of another type, such as CUDA's. */
enum class bf16 : std::uint16_t {};
enum class f16 : std::uint16_t {};
enum class f8_e4m3 : std::uint8_t {};
enum class f8_e5m2 : std::uint8_t {};

template <class T> constexpr varve_type type_of()
{
	if constexpr (std::is_same_v<T, bf16>)
		return VARVE_BF16;
	else if constexpr (std::is_same_v<T, f16>)
		return VARVE_F16;
	else if constexpr (std::is_same_v<T, f8_e4m3>)
		return VARVE_F8_E4M3;
	else if constexpr (std::is_same_v<T, f8_e5m2>)
		return VARVE_F8_E5M2;
#ifdef __STDCPP_BFLOAT16_T__
	else if constexpr (std::is_same_v<T, std::bfloat16_t>)
		return VARVE_BF16;
#endif
#ifdef __STDCPP_FLOAT16_T__
	else if constexpr (std::is_same_v<T, std::float16_t>)
		return VARVE_F16;
#endif
	else if constexpr (std::is_enum_v<T>)
		return type_of<std::underlying_type_t<T>>();
	else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8) {
		constexpr bool sign = std::is_signed_v<T>;
		constexpr varve_type none = VARVE_BYTES;
		constexpr varve_type type[9] = { none, sign ? VARVE_I8 : VARVE_U8, sign ? VARVE_I16 : VARVE_U16, none,
						 sign ? VARVE_I32 : VARVE_U32, none, none, none, sign ? VARVE_I64 : VARVE_U64 };
		return type[sizeof(T)];
	} else if constexpr (std::is_same_v<T, float>)
		return VARVE_F32;
	else if constexpr (std::is_same_v<T, double>)
		return VARVE_F64;
	else if constexpr (std::is_same_v<T, std::complex<float>>)
		return VARVE_C64;
	else if constexpr (std::is_same_v<T, std::complex<double>>)
		return VARVE_C128;
	else
		return VARVE_BYTES;
}

struct shape {
	std::size_t dim[VARVE_MAX_DIMS] = {};
	int n = 0;
	std::size_t count = 1;
	bool fits = true; /* not more dimensions than there may be, nor more elements than can be counted */

	void add(std::size_t extent)
	{
		fits = fits && n < VARVE_MAX_DIMS && !__builtin_mul_overflow(count, extent, &count);
		if (fits)
			dim[n++] = extent;
	}
};

/* T[n] and std::array, of any depth: the type of their elements, and their extents. */
template <class T> struct element {
	using type = T;
	static void add(shape &) {}
};
template <class T, std::size_t N> struct element<T[N]> {
	using type = typename element<T>::type;
	static void add(shape &s)
	{
		s.add(N);
		element<T>::add(s);
	}
};
template <class T, std::size_t N> struct element<std::array<T, N>> : element<T[N]> {};
template <class T> struct element<std::array<T, 0>> {
	using type = typename element<T>::type;
	static void add(shape &s)
	{
		s.add(0);
		element<T>::add(s);
	}
};
template <class T> using element_t = typename element<T>::type;

template <class T> struct is_reference_wrapper : std::false_type {};
template <class T> struct is_reference_wrapper<std::reference_wrapper<T>> : std::true_type {};
template <class T> struct is_bits : std::false_type {};
template <class A> struct is_bits<std::vector<bool, A>> : std::true_type {};

/* Says why a type cannot be saved. */
template <class T> constexpr void require_saveable()
{
	using E = std::remove_cv_t<element_t<T>>;
	static_assert(!std::is_const_v<element_t<T>> && !std::is_const_v<T>,
		      "varve: what is const cannot be saved, because a restart writes into it");
	static_assert(!is_bits<E>::value, "varve: a std::vector<bool> has no elements in memory; use std::vector<char>");
	static_assert(!std::is_pointer_v<E> && !std::is_member_pointer_v<E> && !is_reference_wrapper<E>::value,
		      "varve: a pointer cannot be saved, because what it points to will lie elsewhere; "
		      "protect(name, pointer, {count}) saves what it points to");
	static_assert(!std::is_polymorphic_v<E>,
		      "varve: an object with virtual functions cannot be saved, because it holds an address of this process");
	static_assert(std::is_trivially_copyable_v<E> || is_bits<E>::value || std::is_polymorphic_v<E>,
		      "varve: an object that is not trivially copyable cannot be saved as its bytes; protect its members one by one");
}

/* Contiguous ranges: they have data() and size(). */
template <class R, class = void> struct range {
	static constexpr bool is = false, is_view = false;
};
template <class R> struct range<R, std::void_t<decltype(*std::declval<R &>().data()), decltype(std::declval<R &>().size())>> {
	using type = std::remove_reference_t<decltype(*std::declval<R &>().data())>;
	static constexpr bool is = true;
	/* a range that is const and gives writable elements does not own them: std::span */
	static constexpr bool is_view = !std::is_const_v<std::remove_reference_t<decltype(*std::declval<const R &>().data())>>;
};
template <class R, class = void> struct can_resize : std::false_type {};
template <class R>
struct can_resize<R, std::void_t<typename range<R>::type, decltype(std::declval<R &>().resize(std::size_t()))>> : std::true_type {};

/* Views of several dimensions, as std::mdspan is: extent(i), stride(i), rank(), and data_handle()
 * or data(). */
template <class M, class = void> struct has_handle : std::false_type {};
template <class M> struct has_handle<M, std::void_t<decltype(std::declval<M &>().data_handle())>> : std::true_type {};
template <class M> auto handle(M &m)
{
	if constexpr (has_handle<M>::value)
		return m.data_handle();
	else
		return m.data();
}
template <class M, class = void> struct is_md : std::false_type {};
template <class M>
struct is_md<M, std::void_t<decltype(std::declval<M &>().extent(0)), decltype(std::declval<M &>().stride(0)),
			    decltype(std::declval<M &>().rank()), decltype(*handle(std::declval<M &>()))>> : std::true_type {};

/* Is dimension i the fastest, then i + by, and so on, without gaps? */
template <class M> bool is_dense(M &m, int first, int by)
{
	std::size_t step = 1;
	int rank = static_cast<int>(m.rank());

	for (int k = 0, i = first; k < rank; k++, i += by) {
		auto extent = static_cast<std::size_t>(m.extent(static_cast<std::size_t>(i)));

		if (extent > 1 && static_cast<std::size_t>(m.stride(static_cast<std::size_t>(i))) != step)
			return false;
		step *= extent;
	}
	return true;
}

} // namespace varve_detail

/* ---- the interface --------------------------------------------------------------------------- */

#ifdef VARVE_NO_OLD_NAMES
namespace varve {
#else
struct varve {
	varve() = delete;
#endif

	class error : public std::runtime_error {
	public:
		explicit error(int code) : std::runtime_error(::varve_last_error()), code_(code) {}
		int code() const noexcept { return code_; } /* a VARVE_E... */

	private:
		int code_;
	};

	using bf16 = varve_detail::bf16;
	using f16 = varve_detail::f16;
	using f8_e4m3 = varve_detail::f8_e4m3;
	using f8_e5m2 = varve_detail::f8_e5m2;

	struct pinned_t {};
	static constexpr pinned_t pinned{};

	/* A checkpoint of a program that declares nothing. libvarve_preload.so takes it; without
	 * that library the call does nothing. Returns 1 if the heap has just been restored, 0 if
	 * the program continues, and < 0 if the checkpoint failed. Needs no library to be linked.
	 * The function is looked up by name: in a program of a fixed address the linker would
	 * resolve a weak symbol for good. */
	static inline int checkpoint_here()
	{
		auto here = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "varve_checkpoint_here"));

		return here ? here() : 0;
	}

	using log_fn = varve_detail::log_fn;

	/* The library's messages, of all sessions, go to this function, which may neither throw nor
	 * call into a session; {}: to stderr. */
	static inline void set_log(log_fn log)
	{
		static std::unique_ptr<log_fn> current;
		auto fresh = log ? std::make_unique<log_fn>(std::move(log)) : nullptr;

		::varve_set_log(fresh ? varve_detail::log_sentence : nullptr, fresh.get());
		current = std::move(fresh); /* nobody is in the previous one any more */
	}

	class session {
	public:
		using done_fn = std::function<void(std::uint64_t epoch, int code)>;

		session() noexcept = default;
		explicit session(std::nothrow_t) noexcept : throws_(false) {}
		session(const std::string &store, const std::string &lineage, const std::string &options = "")
		{
			open(store, lineage, options);
		}
		session(session &&other) noexcept { swap(other); }
		session &operator=(session &&other) noexcept
		{
			session(std::move(other)).swap(*this);
			return *this;
		}
		/* Waits as close() does, but does not report a failure. */
		~session() { ::varve_close(v_); }

		int open(const std::string &store, const std::string &lineage, const std::string &options = "")
		{
			::varve_session *v = nullptr;
			int rc = ::varve_open(store.c_str(), lineage.c_str(), options.c_str(), &v);

			return adopt(rc, v);
		}

		int close()
		{
			int rc = ::varve_close(std::exchange(v_, nullptr));

			containers_.clear();
			done_.reset();
			return check(rc);
		}

		explicit operator bool() const noexcept { return v_; }
		::varve_session *get() const noexcept { return v_; } /* for calls of the C interface */

		/* ---- regions ---- */

		/* An object or an array (T[n], std::array). Or the elements of a view (std::span,
		 * std::mdspan). Or a container that can grow (std::vector, std::string). Objects
		 * and elements are trivially copyable. The object stays at its address as long as
		 * it is protected.
		 *
		 * A container may move its elements, and a checkpoint that is being stored cannot
		 * go on without them. So in a session that has one, checkpoint() returns when
		 * everything is durable, unless all are pinned. */
		template <class T> int protect(const std::string &name, T &&x)
		{
			using namespace varve_detail;
			using U = std::remove_reference_t<T>;

			if constexpr (is_md<U>::value) {
				return protect_md(name, x);
			} else if constexpr (range<U>::is && range<U>::is_view) {
				return declare(name, x.data(), x.size());
			} else {
				static_assert(std::is_lvalue_reference_v<T>, "varve: a temporary cannot be saved");
				if constexpr (can_resize<U>::value)
					return keep(name, x, true);
				else if constexpr (range<U>::is && std::is_same_v<element_t<U>, U>)
					return declare(name, x.data(), x.size());
				else
					return declare(name, &x, std::nullopt);
			}
		}

		/* The same, with a promise: before the container moves its elements, the program
		 * calls wait(). */
		template <class T> int protect(const std::string &name, T &x, pinned_t)
		{
			static_assert(varve_detail::can_resize<T>::value, "varve: only a container that can grow need be pinned");
			return keep(name, x, false);
		}

		/* An array in C order, slowest dimension first. */
		template <class T> int protect(const std::string &name, T *p, std::initializer_list<std::size_t> extents)
		{
			varve_detail::shape s;

			for (std::size_t extent : extents)
				s.add(extent);
			return declare(name, p, s);
		}

		int protect_bytes(const std::string &name, void *p, std::size_t bytes)
		{
			return declared(name, ::varve_protect(v_, name.c_str(), p, bytes));
		}

		/* Many arrays in one call: all of them, or none. */
		int protect_arrays(const std::vector<::varve_array> &arrays)
		{
			int rc = ::varve_protect_arrays(v_, arrays.data(), arrays.size());

			for (std::size_t i = 0; rc == 0 && i < arrays.size() && !containers_.empty(); i++)
				declared(arrays[i].name, rc);
			return check(rc);
		}

		/* Structs with named fields: s.protect_records("p", p.data(), p.size(),
		 * { VARVE_FIELD(particle, mass, VARVE_F64) }). */
		template <class T> int protect_records(const std::string &name, T *p, std::size_t n, const std::vector<::varve_field> &fields)
		{
			varve_detail::require_saveable<T>();
			return declared(name, ::varve_protect_records(v_, name.c_str(), p, n, sizeof(T), fields.data(), fields.size()));
		}

		/* A part of a global array in C order, slowest dimension first. The memory at p has
		 * ghost[i] elements before and behind the part in dimension i; {}: none. */
		struct part {
			std::vector<std::size_t> global, start, count, ghost = {};
		};

		/* This rank's part of a global array. A restart on another number of ranks fills it
		 * from the parts that overlap it. */
		template <class T> int protect_slab(const std::string &name, T *p, const part &s)
		{
			constexpr varve_type type = varve_detail::type_of<std::remove_cv_t<T>>();
			std::size_t n = s.global.size();

			varve_detail::require_saveable<T>();
			static_assert(type != VARVE_BYTES, "varve: a global array has elements of a number type");
			if (s.start.size() != n || s.count.size() != n || (!s.ghost.empty() && s.ghost.size() != n) || n > VARVE_MAX_DIMS)
				return check(::varve_fail(VARVE_EINVAL, ("region '" + name + "': global, start, count and ghost need a number for each "
									 "dimension").c_str()));
			return declared(name, ::varve_protect_slab(v_, name.c_str(), const_cast<std::remove_cv_t<T> *>(p), type, static_cast<int>(n),
								   s.global.data(), s.start.data(), s.count.data(), s.ghost.empty() ? nullptr : s.ghost.data()));
		}

		/* The same for a view of several dimensions in C order, as std::mdspan with
		 * layout_right is. It includes the ghost cells. */
		template <class M, std::enable_if_t<varve_detail::is_md<M>::value, int> = 0>
		int protect_slab(const std::string &name, M m, const std::vector<std::size_t> &global, const std::vector<std::size_t> &start,
				 const std::vector<std::size_t> &ghost = {})
		{
			part s = { global, start, std::vector<std::size_t>(m.rank()), ghost };

			if (!varve_detail::is_dense(m, static_cast<int>(m.rank()) - 1, -1))
				return check(::varve_fail(VARVE_EINVAL, ("region '" + name + "': the view is not contiguous in C order").c_str()));
			for (std::size_t i = 0; i < s.count.size(); i++) {
				std::size_t extent = static_cast<std::size_t>(m.extent(i)), around = i < ghost.size() ? ghost[i] : 0;

				if (around > extent / 2)
					return check(::varve_fail(VARVE_EINVAL, ("region '" + name + "': the view has fewer elements than ghost cells").c_str()));
				s.count[i] = extent - 2 * around;
			}
			return protect_slab(name, &*varve_detail::handle(m), s);
		}

		/* A region that is equal on all ranks: an object, an array, or a view that is not
		 * resized. */
		template <class T> int protect_shared(const std::string &name, T &x)
		{
			using namespace varve_detail;

			if constexpr (range<T>::is) {
				require_saveable<typename range<T>::type>();
				return declared(name, ::varve_protect_shared(v_, name.c_str(), x.data(), x.size() * sizeof(*x.data())));
			} else {
				require_saveable<T>();
				return declared(name, ::varve_protect_shared(v_, name.c_str(), &x, sizeof(x)));
			}
		}

		/* This rank's part of a list: n items, of numbers or of any trivially copyable
		 * type. */
		template <class T> int protect_list(const std::string &name, T *p, std::size_t n)
		{
			using E = std::remove_cv_t<varve_detail::element_t<T>>;
			constexpr varve_type type = varve_detail::type_of<E>();

			varve_detail::require_saveable<T>();
			return declared(name, ::varve_protect_list(v_, name.c_str(), const_cast<std::remove_cv_t<T> *>(p), type,
								   type == VARVE_BYTES ? sizeof(T) : sizeof(T) / sizeof(E), n));
		}

		/* How many items of a list this rank is to have after a restart, and how many there
		 * are in all. 0: there is no epoch yet. */
		int list_share(const std::string &name, std::uint64_t &share, std::uint64_t &total, std::uint64_t epoch = VARVE_LATEST)
		{
			return check(::varve_list_share(v_, epoch, name.c_str(), &share, &total));
		}

		int unprotect(const std::string &name)
		{
			return declared(name, ::varve_unprotect(v_, name.c_str()));
		}

		int untrack(const std::string &name) { return check(::varve_untrack(v_, name.c_str())); }
		int refine(const std::string &name, std::size_t grain, const char *method = nullptr)
		{
			return check(::varve_refine(v_, name.c_str(), method, grain));
		}

		/* n zeroed elements on pages of their own, which are a region; nullptr if it
		 * failed. */
		template <class T> T *alloc(const std::string &name, std::size_t n)
		{
			varve_detail::require_saveable<T>();
			std::size_t bytes = 0;
			void *p = nullptr;

			if (__builtin_mul_overflow(n, sizeof(T), &bytes))
				check(::varve_fail(VARVE_ENOMEM, "varve::session::alloc: more bytes than can be counted"));
			else if (!(p = ::varve_alloc(v_, name.c_str(), bytes)))
				check(v_ ? VARVE_ENOMEM : VARVE_EINVAL);
			return static_cast<T *>(p);
		}
#if __cplusplus >= 202002L
		template <class T> std::span<T> alloc_span(const std::string &name, std::size_t n)
		{
			T *p = alloc<T>(name, n);

			return { p, p ? n : 0 };
		}
#endif
		int free(void *p) { return check(::varve_free(v_, p)); }

		/* ---- checkpoint ---- */

		int checkpoint()
		{
			return take([this] { return ::varve_checkpoint(v_); });
		}
		int checkpoint(void *cuda_stream)
		{
			return take([this, cuda_stream] { return ::varve_checkpoint_on_stream(v_, cuda_stream); });
		}
		/* The label of the next epoch; "" for none. */
		int label(const std::string &label) { return check(::varve_label(v_, label.c_str())); }
		std::uint64_t epoch() const noexcept { return ::varve_epoch(v_); }
		std::uint64_t protected_epoch() const noexcept { return ::varve_protected_epoch(v_); }
		int test(std::uint64_t epoch) { return check(::varve_test(v_, epoch)); }
		int wait(std::uint64_t epoch = VARVE_LATEST) { return check(::varve_wait(v_, epoch)); }
		/* 1: durable; 0: not yet, after so many seconds. */
		int wait_for(double seconds, std::uint64_t epoch = VARVE_LATEST) { return check(::varve_wait_for(v_, epoch, seconds)); }
		int due() { return check(::varve_due(v_)); }

		/* Called on a thread of the library, and may neither throw nor call into the
		 * session. It lives until another takes its place or the session is closed. */
		int on_done(done_fn done)
		{
			auto fresh = done ? std::make_unique<done_fn>(std::move(done)) : nullptr;
			int rc = ::varve_on_done(v_, fresh ? tell : nullptr, fresh.get());

			if (rc == 0)
				done_ = std::move(fresh);
			return check(rc);
		}

		/* ---- restart ---- */

		/* Containers become as long as they were in the epoch. */
		int restart(std::uint64_t epoch = VARVE_LATEST)
		{
			int rc = restart_with_sizes(epoch);

			if (rc == VARVE_EMISMATCH && epoch == VARVE_LATEST && !containers_.empty())
				rc = fall_back();
			return check(rc);
		}

		/* One region, into n elements that need not be protected. */
		template <class T> int restart_region(const std::string &name, T *p, std::size_t n, std::uint64_t epoch = VARVE_LATEST)
		{
			varve_detail::require_saveable<T>();
			return check(::varve_restart_region(v_, epoch, name.c_str(), p, n * sizeof(T)));
		}

		/* Restarts, and calls body(step) for every step that is left, with a checkpoint
		 * before those where one is due. `step` must be protected. */
		template <class I, class F> int loop(I &step, const I &end, F body)
		{
			int rc = restart();

			for (; rc >= 0 && step < end; ++step) {
				rc = due();
				if (rc > 0)
					rc = checkpoint();
				if (rc < 0)
					break;
				body(step);
			}
			return rc < 0 ? rc : 0;
		}

		/* Nothing only in a session that does not throw. */
		std::optional<::varve_region_info> region(const std::string &name, std::uint64_t epoch = VARVE_LATEST)
		{
			::varve_region_info info = {};

			if (check(::varve_region(v_, epoch, name.c_str(), &info)) < 0)
				return std::nullopt;
			return info;
		}
		std::optional<struct ::varve_stats> stats()
		{
			struct ::varve_stats st = {};

			if (check(::varve_stats(v_, &st)) < 0)
				return std::nullopt;
			return st;
		}

	protected:
		/* rc, v: the results of a call that opens a session. */
		int adopt(int rc, ::varve_session *v)
		{
			if (rc == 0 && v_) {
				::varve_close(v);
				rc = ::varve_fail(VARVE_EINVAL, "varve::session: it is open already; close it first");
			} else if (rc == 0) {
				v_ = v;
			}
			return check(rc);
		}

	private:
		/* One that can grow: how long it is and where is asked at each checkpoint. */
		struct container {
			std::string name;
			void *object;
			bool moves;
			int (*declare)(::varve_session *, container &);
			void (*resize)(void *object, std::uint64_t bytes);
			const void *p;
			std::size_t size;
			bool declared;
		};

		::varve_session *v_ = nullptr;
		bool throws_ = true;
		std::vector<container> containers_;
		std::unique_ptr<done_fn> done_;

		void swap(session &other) noexcept
		{
			std::swap(v_, other.v_);
			std::swap(throws_, other.throws_);
			containers_.swap(other.containers_);
			done_.swap(other.done_);
		}

		int check(int rc) const
		{
			if (rc < 0 && throws_)
				throw error(rc);
			return rc;
		}

		static void tell(void *done, std::uint64_t epoch, int code) noexcept { (*static_cast<done_fn *>(done))(epoch, code); }

		template <class T> static int put(::varve_session *v, const std::string &name, T *p, varve_detail::shape s)
		{
			using E = std::remove_cv_t<varve_detail::element_t<T>>;
			constexpr varve_type type = varve_detail::type_of<E>();

			varve_detail::require_saveable<T>();
			varve_detail::element<T>::add(s);
			if (!s.n)
				s.add(1);
			if (!s.fits || s.count > SIZE_MAX / sizeof(E))
				return ::varve_fail(VARVE_EINVAL, "varve::session::protect: too many dimensions or elements");
			/* E may be another type here: require_saveable has refused a wrong one,
			 * with one message */
			void *at = const_cast<void *>(static_cast<const volatile void *>(p));
			if constexpr (type == VARVE_BYTES)
				return ::varve_protect(v, name.c_str(), at, s.count * sizeof(E));
			else
				return ::varve_protect_array(v, name.c_str(), at, type, s.n, s.dim);
		}

		template <class T> int declare(const std::string &name, T *p, const varve_detail::shape &s)
		{
			return declared(name, put(v_, name, p, s));
		}
		template <class T> int declare(const std::string &name, T *p, std::optional<std::size_t> n)
		{
			varve_detail::shape s;

			if (n)
				s.add(*n);
			return declare(name, p, s);
		}

		template <class M> int protect_md(const std::string &name, M &m)
		{
			int rank = static_cast<int>(m.rank());
			bool right = varve_detail::is_dense(m, rank - 1, -1);
			varve_detail::shape s;

			if (!right && !varve_detail::is_dense(m, 0, 1))
				return check(::varve_fail(VARVE_EINVAL, ("region '" + name + "': the view is not contiguous in memory; "
									 "protect what it is a part of").c_str()));
			for (int i = 0; i < rank; i++)
				s.add(static_cast<std::size_t>(m.extent(static_cast<std::size_t>(right ? i : rank - 1 - i))));
			return declare(name, &*varve_detail::handle(m), s);
		}

		template <class C> static int declare_container(::varve_session *v, container &c)
		{
			C &x = *static_cast<C *>(c.object);
			varve_detail::shape s;

			if (c.declared && c.p == x.data() && c.size == x.size())
				return 0;
			s.add(x.size());
			int rc = put(v, c.name, x.data(), s);
			c.declared = rc == 0;
			c.p = x.data();
			c.size = x.size();
			return rc;
		}

		template <class C> static void resize_container(void *object, std::uint64_t bytes)
		{
			constexpr std::size_t size = sizeof(typename varve_detail::range<C>::type);

			if (bytes % size == 0) /* if not, it cannot be restarted, and the words for it are the library's */
				static_cast<C *>(object)->resize(static_cast<std::size_t>(bytes / size));
		}

		template <class C> int keep(const std::string &name, C &x, bool moves)
		{
			varve_detail::require_saveable<typename varve_detail::range<C>::type>();
			container c = { name, &x, moves, declare_container<C>, resize_container<C>, nullptr, 0, false };
			int rc = declared(name, c.declare(v_, c));

			if (rc == 0)
				containers_.push_back(std::move(c));
			return rc;
		}

		/* The name has become another's, or nobody's: a container that had it is asked no
		 * more. */
		int declared(const std::string &name, int rc)
		{
			for (std::size_t i = 0; rc == 0 && i < containers_.size(); i++)
				if (containers_[i].name == name)
					containers_.erase(containers_.begin() + static_cast<std::ptrdiff_t>(i--));
			return check(rc);
		}

		template <class F> int take(F checkpoint_now)
		{
			bool moves = false;
			int rc = 0;

			for (container &c : containers_) {
				moves = moves || c.moves;
				rc = rc ? rc : c.declare(v_, c);
			}
			if (rc == 0)
				rc = checkpoint_now();
			if (rc == 0 && moves)
				rc = ::varve_wait(v_, ::varve_epoch(v_));
			return check(rc);
		}

		/* Gives the containers the size they had; false: there is no memory for it. A
		 * container that the epoch lacks stays as it is: the restart reports it. */
		bool fit(std::uint64_t epoch)
		{
			::varve_region_info info = {};
			bool fits = true;

			for (container &c : containers_) {
				if (::varve_region(v_, epoch, c.name.c_str(), &info) == 0)
					try {
						c.resize(c.object, info.bytes);
					} catch (const std::exception &) { /* std::bad_alloc, std::length_error */
						fits = false;
					}
				c.declare(v_, c);
			}
			return fits;
		}

		int restart_with_sizes(std::uint64_t epoch)
		{
			bool fits = fit(epoch);
			int rc = ::varve_restart(v_, epoch); /* also if not: other ranks make this call */

			if (rc < 0 && !fits)
				rc = ::varve_fail(VARVE_ENOMEM, "varve::session::restart: no memory to make a container as long as it was");
			return rc;
		}

		/* The newest epoch is damaged, and containers have other sizes in older ones. Tries
		 * each older epoch with its own sizes, from the newest one whose other regions are
		 * intact. All ranks make the same calls. */
		int fall_back()
		{
			std::string words;
			int rc, first = 0;

			for (container &c : containers_) {
				::varve_unprotect(v_, c.name.c_str());
				c.declared = false;
			}
			rc = ::varve_restart(v_, VARVE_LATEST);
			for (std::uint64_t epoch = rc > 0 ? ::varve_epoch(v_) : 0; epoch > 0; epoch--) {
				rc = restart_with_sizes(epoch);
				if (rc != VARVE_EDAMAGED && rc != VARVE_EIO && rc != VARVE_ENOENT)
					break;
				if (!first) {
					first = rc;
					words = ::varve_last_error();
				}
			}
			if (rc > 0)
				return rc;
			if (!first) {
				first = rc;
				words = ::varve_last_error();
			}
			for (container &c : containers_)
				c.declare(v_, c);
			return ::varve_fail(first, words.c_str());
		}
	};

	/* Reads a store without being its writer, also beside one: varve_read.h. A call that fails
	 * throws varve::error. */
	class reader {
	public:
		struct epoch_info {
			std::uint64_t epoch, parent, time_ns, bytes_memory, bytes_stored, bytes_layer;
			std::uint32_t ranks;
			bool complete;
			std::string problem; /* "" if it is complete */
			std::vector<std::string> labels;
		};
		struct field_info {
			std::string name;
			varve_type type;
			std::size_t offset, bytes;
		};
		struct region_info {
			std::string name;
			std::uint64_t bytes;
			varve_type type;
			std::uint32_t element;
			std::vector<std::uint64_t> shape;
			std::vector<field_info> fields; /* of VARVE_RECORD, by offset */
		};

		explicit reader(const std::string &store) { open(store.c_str(), nullptr, nullptr); } /* lists the lineages only */
		reader(const std::string &store, const std::string &lineage, const std::string &options = "")
		{
			open(store.c_str(), lineage.c_str(), options.c_str());
		}
		reader(reader &&other) noexcept : r_(std::exchange(other.r_, nullptr)) {}
		reader &operator=(reader &&other) noexcept
		{
			std::swap(r_, other.r_);
			return *this;
		}
		~reader() { close(); }
		void close() noexcept { ::varve_reader_close(std::exchange(r_, nullptr)); }
		::varve_reader *get() const noexcept { return r_; } /* for calls of the C interface */

		std::vector<std::string> lineages()
		{
			const char *const *name = nullptr;
			std::size_t n = 0;

			check(::varve_reader_lineages(r_, &name, &n));
			return { name, name + n };
		}

		std::vector<epoch_info> epochs()
		{
			const struct ::varve_stored_epoch *const *list = nullptr;
			std::vector<epoch_info> out;
			std::size_t n = 0;

			check(::varve_reader_epochs(r_, &list, &n));
			for (std::size_t i = 0; i < n; i++) {
				const struct ::varve_stored_epoch &e = *list[i];

				out.push_back({ e.epoch, e.parent, e.time_ns, e.bytes_memory, e.bytes_stored, e.bytes_layer, e.ranks, e.complete != 0,
						e.problem ? e.problem : "", { e.label, e.label + e.n_labels } });
			}
			return out;
		}

		std::uint64_t latest()
		{
			std::uint64_t epoch = 0;

			check(::varve_reader_latest(r_, &epoch));
			return epoch;
		}

		/* The epoch with a label, or the newest for "latest". */
		std::uint64_t find(const std::string &label)
		{
			std::uint64_t epoch = 0;

			check(::varve_reader_find(r_, label.c_str(), &epoch));
			return epoch;
		}

		std::vector<region_info> regions(std::uint64_t epoch = VARVE_LATEST, std::uint32_t rank = 0)
		{
			const struct ::varve_stored_region *const *list = nullptr;
			std::vector<region_info> out;
			std::size_t n = 0;

			check(::varve_reader_regions(r_, epoch, rank, &list, &n));
			for (std::size_t i = 0; i < n; i++) {
				out.push_back({ list[i]->name, list[i]->bytes, list[i]->type, list[i]->element,
						{ list[i]->shape, list[i]->shape + list[i]->ndim }, {} });
				for (std::size_t k = 0; k < list[i]->n_fields; k++)
					out.back().fields.push_back({ list[i]->field[k].name, list[i]->field[k].type, list[i]->field[k].offset,
								      list[i]->field[k].bytes });
			}
			return out;
		}

		/* So many bytes of a region, from byte `start` on. */
		void read_bytes(const std::string &name, std::uint64_t start, std::uint64_t bytes, void *p, std::uint64_t epoch = VARVE_LATEST,
				std::uint32_t rank = 0)
		{
			check(::varve_reader_read(r_, epoch, rank, name.c_str(), start, bytes, p));
		}

		/* A whole region. */
		template <class T> std::vector<T> read(const std::string &name, std::uint64_t epoch = VARVE_LATEST, std::uint32_t rank = 0)
		{
			return read_part<T>(name, {}, {}, epoch, rank);
		}

		/* A part of an array: in each dimension count[i] elements from start[i] on. */
		template <class T>
		std::vector<T> read_part(const std::string &name, const std::vector<std::uint64_t> &start, const std::vector<std::uint64_t> &count,
				    std::uint64_t epoch = VARVE_LATEST, std::uint32_t rank = 0)
		{
			varve_detail::require_saveable<T>();
			for (int left = 20;; left--) {
				std::uint64_t number = epoch == VARVE_LATEST ? latest() : epoch;

				try {
					return read_epoch<T>(name, start, count, number, rank);
				} catch (const error &e) { /* the newest may be dropped meanwhile: then there is a newer one */
					if (e.code() != VARVE_ENOENT || epoch != VARVE_LATEST || left == 0 || latest() == number)
						throw;
				}
			}
		}

	private:
		::varve_reader *r_ = nullptr;

		static void check(int rc)
		{
			if (rc < 0)
				throw error(rc);
		}

		void open(const char *store, const char *lineage, const char *options)
		{
			check(::varve_reader_open(store, lineage, options, &r_));
		}

		region_info find_region(const std::string &name, std::uint64_t epoch, std::uint32_t rank)
		{
			for (region_info &r : regions(epoch, rank))
				if (r.name == name)
					return r;
			check(::varve_reader_read(r_, epoch, rank, name.c_str(), 0, 0, nullptr)); /* says which regions there are */
			throw error(VARVE_ENOENT);
		}

		template <class T>
		std::vector<T> read_epoch(const std::string &name, const std::vector<std::uint64_t> &start, const std::vector<std::uint64_t> &count,
					  std::uint64_t epoch, std::uint32_t rank)
		{
			constexpr varve_type type = varve_detail::type_of<T>();
			region_info r = find_region(name, epoch, rank);
			std::uint64_t bytes = r.bytes;

			if (r.type != type && r.type != VARVE_BYTES && type != VARVE_BYTES)
				check(::varve_fail(VARVE_EMISMATCH, ("region '" + name + "' has elements of another type").c_str()));
			if (r.shape.empty())
				r.shape.push_back(r.bytes);
			if ((!start.empty() || !count.empty()) && (start.size() != r.shape.size() || count.size() != r.shape.size()))
				check(::varve_fail(VARVE_EINVAL, ("region '" + name + "' has " + std::to_string(r.shape.size()) +
								  " dimensions: as many starts and counts are needed").c_str()));
			if (!count.empty())
				bytes = r.element;
			for (std::uint64_t n : count)
				if (__builtin_mul_overflow(bytes, n, &bytes))
					bytes = UINT64_MAX;
			if (!count.empty() && bytes > r.bytes) /* more bytes than the region has: this call reports the error */
				check(::varve_reader_read_part(r_, epoch, rank, name.c_str(), start.data(), count.data(), nullptr));
			if (bytes % sizeof(T))
				check(::varve_fail(VARVE_EMISMATCH, ("region '" + name + "': its bytes are no whole number of elements").c_str()));
			std::vector<T> out(static_cast<std::size_t>(bytes / sizeof(T)));
			check(::varve_reader_read_part(r_, epoch, rank, name.c_str(), start.empty() ? nullptr : start.data(),
						       count.empty() ? nullptr : count.data(), out.data()));
			return out;
		}
	};
#ifdef VARVE_NO_OLD_NAMES
} // namespace varve
#else
};
#endif

#endif
