// ctest: MPI 1,3
/* A session over a communicator, in C++: vectors of different lengths on every rank, and errors that all ranks see. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <varve/varve_mpi.hpp>

#define CHECK(x)                                                                                          \
	do {                                                                                              \
		if (!(x)) {                                                                               \
			std::fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #x, varve_last_error()); \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                     \
		}                                                                                         \
	} while (0)

/* The same folder for all ranks, made by the first. */
static std::string common_folder(int rank)
{
	char name[4096] = "";

	if (rank == 0) {
		std::snprintf(name, sizeof(name), "%s/varve-cpp-XXXXXX", std::filesystem::temp_directory_path().c_str());
		CHECK(mkdtemp(name));
	}
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	return name;
}

static void grow_and_come_back(const std::string &store, int rank)
{
	std::size_t n = 1000u * static_cast<unsigned>(rank + 1);
	std::vector<int> x;
	int step = 0;

	{
		varve_mpi::session s(MPI_COMM_WORLD, store, "a");

		s.protect("step", step);
		s.protect("x", x);
		CHECK(s.restart() == 0);
		for (step = 1; step <= 3; step++) {
			x.resize(n * static_cast<unsigned>(step), step);
			s.checkpoint();
		}
		s.close();
	}
	varve_mpi::session s(std::nothrow);
	x.clear();
	CHECK(s.open(MPI_COMM_WORLD, store, "a") == 0);
	CHECK(s.protect("step", step) == 0 && s.protect("x", x) == 0 && s.restart() == 1);
	CHECK(step == 3 && x.size() == 3 * n && x[0] == 1 && x[n] == 2 && x[3 * n - 1] == 3);
	CHECK(s.close() == 0);
}

int main(int argc, char **argv)
{
	int rank = 0, size = 0, code = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	std::string store = common_folder(rank);
	grow_and_come_back(store, rank);
	try {
		varve_mpi::session s(MPI_COMM_WORLD, store, "b", rank == size - 1 ? "codec=gzip" : "");
	} catch (const varve::error &e) {
		code = e.code();
	}
	CHECK(code < 0);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		std::filesystem::remove_all(store);
	MPI_Finalize();
	return 0;
}
