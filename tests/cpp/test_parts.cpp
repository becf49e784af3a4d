// Parts of global arrays, shared regions and lists by the C++ header: stored in two parts, restarted in one.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <unistd.h>
#include <varve/varve.hpp>

#define CHECK(x)                                                                                          \
	do {                                                                                              \
		if (!(x)) {                                                                               \
			std::fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #x, varve_last_error()); \
			std::exit(1);                                                                     \
		}                                                                                         \
	} while (0)

namespace {

// What a program without std::mdspan has: a view in C order.
template <class T> struct view {
	T *p;
	std::size_t n[2], step;
	T *data_handle() const { return p; }
	std::size_t rank() const { return 2; }
	std::size_t extent(std::size_t i) const { return n[i]; }
	std::size_t stride(std::size_t i) const { return i ? 1 : step; }
};

struct particle {
	double x[3];
	int id;
};

template <class F> int code_of(F f)
{
	try {
		f();
	} catch (const varve::error &e) {
		return e.code();
	}
	return 0;
}

double cell(std::size_t row, std::size_t column)
{
	return static_cast<double>(row) * 100 + static_cast<double>(column);
}

void store(const std::string &at)
{
	double upper[5][6], lower[6][6]; // rows 0 to 3 and 4 to 8, of 6; a ghost row at each end where there is a neighbour
	std::vector<particle> particles(10);
	long step = 7;
	varve::session s(at, "run", "mode=sync");

	for (std::size_t row = 0; row < 4; row++)
		for (std::size_t column = 0; column < 6; column++)
			upper[row][column] = cell(row, column);
	for (std::size_t row = 4; row < 10; row++)
		for (std::size_t column = 0; column < 6; column++)
			lower[row - 4][column] = cell(row, column);
	for (int i = 0; i < 10; i++)
		particles[static_cast<std::size_t>(i)] = { { i * 1.0, 0, 0 }, i };
	CHECK(s.protect_slab("T#upper", &upper[0][0], { { 10, 6 }, { 0, 0 }, { 4, 6 } }) == 0);
	CHECK(s.protect_slab("T#lower", view<double>{ &lower[0][0], { 6, 6 }, 6 }, { 10, 6 }, { 4, 0 }) == 0);
	CHECK(s.protect_list("particles", particles.data(), particles.size()) == 0);
	CHECK(s.protect_shared("step", step) == 0);
	CHECK(s.protect_shared("all", particles) == 0);
	s.checkpoint();
	s.close();
}

void restart(const std::string &at)
{
	double T[12][8]; // a ghost cell around
	std::vector<particle> particles, all(10);
	std::uint64_t share = 0, total = 0;
	long step = 0;
	varve::session s(at, "run");

	CHECK(s.list_share("particles", share, total) == 1 && share == 10 && total == 10);
	particles.resize(share);
	CHECK(s.protect_slab("T", view<double>{ &T[0][0], { 12, 8 }, 8 }, { 10, 6 }, { 0, 0 }, { 1, 1 }) == 0);
	CHECK(s.protect_list("particles", particles.data(), particles.size()) == 0);
	CHECK(s.protect_shared("step", step) == 0);
	CHECK(s.protect_shared("all", all) == 0);
	CHECK(s.restart());
	for (std::size_t row = 0; row < 10; row++)
		for (std::size_t column = 0; column < 6; column++)
			CHECK(T[row + 1][column + 1] == cell(row, column));
	for (int i = 0; i < 10; i++)
		CHECK(particles[static_cast<std::size_t>(i)].id == i && all[static_cast<std::size_t>(i)].x[0] == i);
	CHECK(step == 7);
	CHECK(code_of([&] { s.protect_slab("T", &T[0][0], { { 10, 6 }, { 0 }, { 4, 6 } }); }) == VARVE_EINVAL);
	CHECK(code_of([&] { s.protect_slab("T", view<double>{ &T[0][0], { 12, 4 }, 8 }, { 12, 4 }, { 0, 0 }); }) == VARVE_EINVAL);
	CHECK(code_of([&] { s.protect_slab("T", view<double>{ &T[0][0], { 12, 8 }, 8 }, { 12, 8 }, { 0, 0 }, { 7, 0 }); }) == VARVE_EINVAL);
	s.close();
}

} // namespace

int main()
{
	std::string folder = (std::getenv("TMPDIR") ? std::getenv("TMPDIR") : std::string("/tmp")) + std::string("/varve-parts-XXXXXX");

	CHECK(mkdtemp(folder.data()));
	store(folder);
	restart(folder);
	CHECK(std::system(("rm -r " + folder).c_str()) == 0);
}
