/* The C++ header: what is saved comes back, as what tools see; errors are thrown, or not; nothing outlives its owner. */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <varve/varve.hpp>

#define CHECK(x)                                                                                          \
	do {                                                                                              \
		if (!(x)) {                                                                               \
			std::fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #x, varve_last_error()); \
			std::exit(1);                                                                     \
		}                                                                                         \
	} while (0)

namespace {

template <class F> int code_of(F f, const char *word)
{
	try {
		f();
	} catch (const varve::error &e) {
		if (!std::strstr(e.what(), word))
			std::fprintf(stderr, "no '%s' in: %s\n", word, e.what());
		CHECK(std::strstr(e.what(), word));
		return e.code();
	}
	return 0;
}

/* A folder of this test's own, which goes with it. */
struct folder {
	std::filesystem::path path;

	folder()
	{
		std::string name = (std::filesystem::temp_directory_path() / "varve-cpp-XXXXXX").string();

		CHECK(mkdtemp(name.data()));
		path = name;
	}
	~folder() { std::filesystem::remove_all(path); }
};

/* As std::mdspan, which this compiler need not have. */
template <class T> struct md {
	T *p;
	std::array<std::size_t, 3> extents, strides;

	T *data_handle() const { return p; }
	std::size_t rank() const { return 3; }
	std::size_t extent(std::size_t i) const { return extents[i]; }
	std::size_t stride(std::size_t i) const { return strides[i]; }
};

template <class T> struct view { /* as std::span */
	T *p;
	std::size_t n;

	T *data() const { return p; }
	std::size_t size() const { return n; }
};

enum class color : std::uint16_t { red, green };
struct pair {
	int a;
	double b;
};

bool is(varve::session &s, const char *name, varve_type type, std::initializer_list<std::uint64_t> shape)
{
	auto info = s.region(name);
	bool same = info && info->type == type && info->ndim == static_cast<int>(shape.size());

	for (std::size_t i = 0; same && i < shape.size(); i++)
		same = info->shape[i] == shape.begin()[i];
	return same;
}

void types()
{
	varve::session s("mem:types", "a");
	char letter = 'v';
	bool yes = true;
	std::int8_t i8 = 1;
	unsigned long ul = 2;
	color c = color::green;
	float f = 3;
	std::complex<double> z(1, 2);
	long double ld = 4;
	pair p{ 5, 6 };
	double grid[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
	std::array<std::array<short, 4>, 2> nested = {};
	std::array<int, 0> none;
	std::vector<std::array<double, 3>> places(5, { 1, 2, 3 });
	std::string text = "some text";
	int raw[6] = { 1, 2, 3, 4, 5, 6 };
	double cube[24] = {};

	std::vector<varve::bf16> weights(3, varve::bf16{ 0x3f80 });
	varve::f16 half{};
	varve::f8_e4m3 small[2][4] = {};
	std::array<varve::f8_e5m2, 5> gradients = {};
	s.protect("weights", weights);
	s.protect("half", half);
	s.protect("small", small);
	s.protect("gradients", gradients);
	s.protect("letter", letter);
	s.protect("yes", yes);
	s.protect("i8", i8);
	s.protect("ul", ul);
	s.protect("c", c);
	s.protect("f", f);
	s.protect("z", z);
	s.protect("ld", ld);
	s.protect("p", p);
	s.protect("grid", grid);
	s.protect("nested", nested);
	s.protect("none", none);
	s.protect("places", places);
	s.protect("text", text);
	s.protect("raw", raw + 0, { 2, 3 });
	s.protect("view", view<int>{ raw, 6 });
	s.protect("right", md<double>{ cube, { 2, 3, 4 }, { 12, 4, 1 } });
	s.protect("left", md<double>{ cube, { 2, 3, 4 }, { 1, 2, 6 } });
	CHECK(code_of([&] { s.protect("gap", md<double>{ cube, { 2, 3, 2 }, { 12, 4, 1 } }); }, "not contiguous") == VARVE_EINVAL);
	s.protect_bytes("bytes", raw, sizeof(raw));
	cube[7] = 7;
	s.checkpoint();
	CHECK(is(s, "letter", std::is_signed_v<char> ? VARVE_I8 : VARVE_U8, { 1 }) && is(s, "yes", VARVE_U8, { 1 }));
	CHECK(is(s, "i8", VARVE_I8, { 1 }) && is(s, "ul", VARVE_U64, { 1 }) && is(s, "c", VARVE_U16, { 1 }));
	CHECK(is(s, "f", VARVE_F32, { 1 }) && is(s, "z", VARVE_C128, { 1 }) && is(s, "ld", VARVE_BYTES, {}));
	CHECK(is(s, "p", VARVE_BYTES, {}) && is(s, "grid", VARVE_F64, { 2, 3 }) && is(s, "nested", VARVE_I16, { 2, 4 }));
	CHECK(is(s, "none", VARVE_I32, { 0 }) && is(s, "places", VARVE_F64, { 5, 3 }) && s.region("text")->bytes == 9);
	CHECK(is(s, "raw", VARVE_I32, { 2, 3 }) && is(s, "view", VARVE_I32, { 6 }) && is(s, "bytes", VARVE_BYTES, {}));
	CHECK(is(s, "weights", VARVE_BF16, { 3 }) && is(s, "half", VARVE_F16, { 1 }) && is(s, "small", VARVE_F8_E4M3, { 2, 4 }));
	CHECK(is(s, "gradients", VARVE_F8_E5M2, { 5 }));
	CHECK(is(s, "right", VARVE_F64, { 2, 3, 4 }) && is(s, "left", VARVE_F64, { 4, 3, 2 }));

	letter = 0, yes = false, ul = 0, c = color::red, z = 0, ld = 0, p = {}, grid[1][2] = 0, cube[7] = 0, raw[5] = 0;
	places.clear();
	text = "another text, which is longer than the one that was saved";
	CHECK(s.restart() == 1);
	CHECK(letter == 'v' && yes && ul == 2 && c == color::green && z == std::complex<double>(1, 2) && ld == 4);
	CHECK(p.a == 5 && p.b == 6 && grid[1][2] == 6 && cube[7] == 7 && raw[5] == 6);
	CHECK(places.size() == 5 && places[4][2] == 3 && text == "some text");
	int copy[6] = {};
	s.restart_region("raw", copy, 6);
	CHECK(copy[5] == 6);
}

/* Each epoch has vectors of its own size, also none at all; a restart finds any of them. */
void vectors()
{
	std::vector<std::vector<int>> was;
	std::vector<int> x;
	std::uint64_t first = 0;
	varve::session s("mem:vectors", "a", "keep=100");

	s.protect("x", x);
	for (std::size_t n : { 10u, 100000u, 3u, 0u, 70000u, 0u, 1u }) {
		x.assign(n, static_cast<int>(n));
		x.shrink_to_fit();
		s.checkpoint();
		CHECK(s.test(s.epoch()) == 1); /* it may move its elements at any time: nothing is under way */
		first = first ? first : s.epoch();
		was.push_back(x);
	}
	for (std::size_t i = was.size(); i-- > 0;) {
		x.assign(i * 7, -1);
		CHECK(s.restart(first + i) == 1 && x == was[i]);
	}
	s.unprotect("x");
	x = {};
	s.checkpoint(); /* it is no longer asked */
	CHECK(s.region("x", first)->shape[0] == was[0].size());

	std::vector<int> y(1000, 5); /* a promise: then the epoch is stored behind the program */
	s.protect("y", y, varve::pinned);
	s.checkpoint();
	y[3] = 6;
	s.wait(VARVE_LATEST);
	y.resize(2000000, 1);
	s.checkpoint();
	s.wait();
	y = {};
	CHECK(s.restart() == 1 && y.size() == 2000000 && y[3] == 6 && y[1999999] == 1);
	std::vector<char> z(7);
	s.protect("y", z); /* the name is z's now */
	s.protect("y", z);
	s.checkpoint();
	CHECK(s.region("y")->bytes == 7);
	CHECK(code_of([&] { s.restart(99); }, "no epoch 99") == VARVE_ENOENT && z.size() == 7);
}

void other_type()
{
	varve::session s("mem:other", "a");
	std::vector<int> x(12, 1);
	std::vector<float> y(5);
	std::vector<std::array<char, 5>> z(3);

	s.protect("x", x);
	s.checkpoint();
	s.protect("x", y);
	CHECK(code_of([&] { s.restart(); }, "declared as f32") == VARVE_EMISMATCH);
	s.protect("x", z); /* 48 bytes are no number of these */
	CHECK(code_of([&] { s.restart(); }, "48 bytes") == VARVE_EMISMATCH);
	y.assign(5, 2); /* an older epoch that would fit is not taken for one that is whole */
	s.protect("x", y);
	s.checkpoint();
	s.protect("x", x);
	s.checkpoint();
	s.protect("x", y);
	CHECK(code_of([&] { s.restart(); }, "declared as f32") == VARVE_EMISMATCH);
	CHECK(s.restart(2) == 1 && y.size() == 5);
}

/* Breaks every file of the epoch's layer. */
void damage(const std::filesystem::path &store, const std::string &layer)
{
	bool found = false;

	for (const auto &f : std::filesystem::recursive_directory_iterator(store))
		if (f.path().filename().string().find(layer) == 0) {
			std::fstream io(f.path(), std::ios::in | std::ios::out | std::ios::binary);

			io.seekp(100);
			io.write("damage", 6);
			found = true;
		}
	CHECK(found);
}

/* The newest epoch is damaged, and the one before has another size. */
void falls_back()
{
	folder where;
	std::vector<double> x(5000, 1.5);
	int step = 1;

	setenv("VARVE_LOG", "error", 1);
	{
		varve::session s(where.path.string(), "a", "codec=none");

		s.protect("step", step);
		s.protect("x", x);
		s.checkpoint();
		for (step = 2; step <= 4; step++) {
			for (int i = 0; i < 4000; i++)
				x.push_back(i + 0.25 * step);
			s.checkpoint();
		}
		s.close();
	}
	damage(where.path, "0000000004.r0.layer");
	damage(where.path, "0000000003.r0.layer");
	varve::session s(where.path.string(), "a");
	s.protect("step", step);
	s.protect("x", x);
	CHECK(s.restart() == 1 && s.epoch() == 2 && step == 2 && x.size() == 9000 && x[4999] == 1.5 && x[8999] == 3999.5);
	x.resize(3);
	CHECK(code_of([&] { s.restart(4); }, "") == VARVE_EDAMAGED);
	x.assign(77, 1);
	damage(where.path, "0000000002.r0.layer");
	damage(where.path, "0000000001.r0.layer");
	CHECK(code_of([&] { s.restart(); }, "") == VARVE_EDAMAGED);
	unsetenv("VARVE_LOG");
}

void errors()
{
	varve::session none;
	int x = 0;

	CHECK(!none && code_of([&] { none.checkpoint(); }, "no session") == VARVE_EINVAL);
	CHECK(code_of([&] { none.wait(); }, "no session") == VARVE_EINVAL);
	CHECK(code_of([&] { none.protect("x", x); }, "no session") == VARVE_EINVAL);
	CHECK(code_of([] { varve::session s("mem:e", "a", "codec=gzip"); }, "gzip") == VARVE_EINVAL);
	varve::session s("mem:e", "a");
	CHECK(code_of([] { varve::session("mem:e", "a"); }, "") == VARVE_EBUSY);
	CHECK(code_of([&] { s.open("mem:e", "b"); }, "open already") == VARVE_EINVAL);
	CHECK(code_of([&] { s.stats(); }, "no checkpoint") == VARVE_ENOENT);
	CHECK(code_of([&] { s.alloc<double>("huge", SIZE_MAX / 4); }, "") == VARVE_ENOMEM);
	CHECK(code_of([&] { s.protect("x", &x, { SIZE_MAX, 8 }); }, "too many") == VARVE_EINVAL);
	CHECK(code_of([&] { s.protect("", x); }, "name") == VARVE_EINVAL);
	std::vector<int> v(3);
	CHECK(code_of([&] { s.protect("", v); }, "name") == VARVE_EINVAL);
	s.checkpoint(); /* and the vector was not kept */

	varve::session quiet(std::nothrow);
	CHECK(quiet.checkpoint() == VARVE_EINVAL && quiet.open("mem:e", "a") == VARVE_EBUSY && !quiet);
	CHECK(quiet.open("mem:e", "c") == 0 && quiet.protect("x", x) == 0 && !quiet.stats() && !quiet.region("x"));
	CHECK(quiet.label("7") == VARVE_EINVAL && quiet.label("step-7") == 0 && quiet.label("") == 0);
	CHECK(quiet.restart() == 0 && quiet.due() == 1 && quiet.checkpoint() == 0 && quiet.stats()->bytes_memory == sizeof(int));
	CHECK(quiet.unprotect("y") == VARVE_ENOENT && !quiet.alloc<int>("x", 1) && quiet.close() == 0 && quiet.close() == 0);
}

void moves()
{
	int x = 1;
	std::atomic<int> calls{ 0 };
	auto owned = std::make_shared<int>(0);
	varve::session a("mem:moves", "a"), b;

	a.protect("x", x);
	a.on_done([&calls, owned](std::uint64_t, int code) { calls += code == 0; });
	CHECK(owned.use_count() == 2);
	a.checkpoint();
	b = std::move(a);
	CHECK(!a && b && b.epoch() == 1);
	b.checkpoint();
	b.wait();
	b.on_done([&calls, owned](std::uint64_t, int) { calls += 10; });
	CHECK(calls == 2 && owned.use_count() == 2);
	varve::session c(std::move(b));
	c.checkpoint();
	c.wait();
	c.on_done(nullptr);
	CHECK(calls == 12 && owned.use_count() == 1);
	c.on_done([&calls, owned](std::uint64_t, int) { calls += 100; });
	c.checkpoint();
	c = varve::session("mem:moves", "b"); /* the old one is closed, and waits for it */
	CHECK(calls == 112 && owned.use_count() == 1 && c.epoch() == 0);
	varve::session again("mem:moves", "a");
}

void loops()
{
	int step = 0, sum = 0, stop = 4;
	varve::session s("mem:loop", "a");
	auto body = [&](int i) {
		if (i == stop)
			throw 1; /* dies here */
		sum += i;
	};

	s.protect("step", step);
	s.protect("sum", sum);
	try {
		s.loop(step, 10, body);
		CHECK(false);
	} catch (int) {
	}
	step = sum = -1;
	stop = 99;
	CHECK(s.loop(step, 10, body) == 0 && step == 10 && sum == 45);
	double *p = s.alloc<double>("p", 100);
	p[99] = 1;
	s.refine("p", 64);
	s.untrack("sum");
	s.checkpoint();
	p[99] = 0;
	CHECK(s.restart() == 1 && p[99] == 1 && s.free(p) == 0);
#if __cplusplus >= 202002L
	std::span<int> q = s.alloc_span<int>("q", 10);
	int plain[4] = {};
	s.protect("span", std::span(plain));
	CHECK(q.size() == 10 && s.protect("fixed", std::span<int, 10>(q)) == 0);
	s.checkpoint();
	CHECK(is(s, "span", VARVE_I32, { 4 }));
#endif
	CHECK(varve::checkpoint_here() == 0);
}

} // namespace

int main()
{
	types();
	vectors();
	other_type();
	falls_back();
	errors();
	moves();
	loops();
	return 0;
}
