// varve::reader, protect_arrays, wait_for and set_log.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <varve/varve.hpp>

#define CHECK(e)                                                                                \
	do {                                                                                    \
		if (!(e)) {                                                                     \
			std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #e); \
			std::exit(1);                                                           \
		}                                                                               \
	} while (0)

template <class F> static int code_of(F f, const char *words)
{
	try {
		f();
	} catch (const varve::error &e) {
		if (!std::strstr(e.what(), words))
			std::fprintf(stderr, "'%s' is not in: %s\n", words, e.what());
		CHECK(std::strstr(e.what(), words));
		return e.code();
	}
	return 0;
}

struct point {
	double x[2];
	std::int16_t id;
};
static point points[4];

static void write_epochs(varve::session &s, std::vector<double> &t, int &step)
{
	static const std::size_t shape[] = { 30, 40 }, one = 1;

	s.protect_arrays({ { "t", t.data(), VARVE_F64, 2, shape }, { "step", &step, VARVE_I32, 1, &one } });
	CHECK(code_of([&] { s.protect_arrays({ { "u", t.data(), VARVE_F64, 2, shape }, { "v", nullptr, VARVE_F64, 2, shape } }); }, "'v'") == VARVE_EINVAL);
	s.protect_records("points", points, 4, { VARVE_FIELD(point, id, VARVE_I16), VARVE_FIELD(point, x, VARVE_F64) });
	CHECK(code_of([&] { s.protect_records("bad", points, 4, { VARVE_FIELD(point, id, VARVE_F64) }); }, "multiple") == VARVE_EINVAL);
	for (step = 1; step <= 3; step++) {
		points[3] = { { 1, 2. * step }, 7 };
		std::iota(t.begin(), t.end(), 10000. * step);
		s.label(step == 2 ? "two" : "");
		s.checkpoint();
		CHECK(s.wait_for(60) == 1);
	}
	CHECK(s.wait_for(0, 1) == 1);
}

static void look()
{
	varve::reader all("mem:cpp"), r("mem:cpp", "l", "log=error");
	auto epochs = r.epochs();
	auto regions = r.regions(2);

	CHECK(all.lineages() == std::vector<std::string>{ "l" });
	CHECK(code_of([&] { all.latest(); }, "without a lineage") == VARVE_EINVAL);
	CHECK(r.latest() == 3);
	CHECK(epochs.size() == 3 && epochs[1].epoch == 2 && epochs[1].complete && epochs[1].problem.empty() && epochs[1].parent == 1);
	CHECK(epochs[0].labels.empty() && epochs[1].labels == std::vector<std::string>{ "two" });
	CHECK(r.find("two") == 2 && r.find("latest") == 3);
	CHECK(code_of([&] { r.find("tow"); }, "did you mean 'two'?") == VARVE_ENOENT);
	CHECK(regions.size() == 3 && regions[2].type == VARVE_RECORD && regions[2].element == sizeof(point) && regions[2].fields.size() == 2);
	CHECK(regions[2].fields[0].name == "x" && regions[2].fields[0].bytes == 16 && regions[2].fields[1].offset == 16);
	CHECK(regions[0].fields.empty());
	CHECK(r.read_part<point>("points", { 3 }, { 1 }, 2).at(0).x[1] == 4);
	CHECK(regions[0].name == "t" && regions[0].type == VARVE_F64 && regions[0].element == 8);
	CHECK((regions[0].shape == std::vector<std::uint64_t>{ 30, 40 }));
}

static void read()
{
	varve::reader r("mem:cpp", "l", "log=error"), moved(std::move(r));
	std::vector<double> expect = { 20000 + 2 * 40 + 3, 20000 + 2 * 40 + 4, 20000 + 3 * 40 + 3, 20000 + 3 * 40 + 4 };
	double last = 0;

	CHECK(!r.get());
	r = std::move(moved);
	CHECK((r.read_part<double>("t", { 2, 3 }, { 2, 2 }, 2) == expect));
	CHECK(r.read<double>("t").size() == 1200 && r.read<double>("t")[7] == 30007);
	CHECK(r.read<int>("step", 1).at(0) == 1);
	CHECK(r.read<varve_access>("t", 1).size() == 600); /* of bytes nobody knows the type */
	r.read_bytes("t", 1199 * 8, 8, &last, 1);
	CHECK(last == 10000 + 1199);
	CHECK(code_of([&] { r.read<float>("t"); }, "another type") == VARVE_EMISMATCH);
	CHECK(code_of([&] { r.read_part<double>("t", { 1 }, { 1 }); }, "2 dimensions") == VARVE_EINVAL);
	CHECK(code_of([&] { r.read_part<double>("t", { 0, 0 }, { UINT64_MAX, UINT64_MAX }); }, "elements from 0") == VARVE_EINVAL);
	CHECK(code_of([&] { r.read_part<double>("t", { 29, 0 }, { 2, 1 }); }, "elements from 29") == VARVE_EINVAL);
	CHECK(code_of([&] { r.read<double>("u"); }, "it holds 't', 'step'") == VARVE_ENOENT);
	CHECK(code_of([&] { r.read<double>("t", 9); }, "no epoch 9") == VARVE_ENOENT);
	CHECK(code_of([&] { varve::reader("mem:cpp", "m"); }, "no lineage 'm'") == VARVE_ENOENT);
}

static void log()
{
	int n = 0;
	std::string last;

	varve::set_log([&](int level, const std::string &sentence) {
		n += level == VARVE_LOG_WARN;
		last = sentence;
	});
	varve::session("mem:cpp", "log", "log=warn"); /* from now on */
	setenv("VARVE_CODEX", "lz4", 1);
	varve::session("mem:cpp", "log", "log=warn");
	CHECK(n == 1 && last.find("VARVE_CODEX") == 0);
	varve::set_log({});
}

int main()
{
	std::vector<double> t(1200);
	int step = 0;
	varve::session s("mem:cpp", "l", "log=error"); /* stays open: readers are beside a writer */

	write_epochs(s, t, step);
	look();
	read();
	log();
	return 0;
}
