/* The same in C++: memory of new and of a vector. */
#include <memory>
#include <varve/varve.hpp>
#include <vector>

static const std::size_t cells = 1 << 18;

int main(int argc, char **argv)
{
	if (argc < 2)
		return 1;

	varve::session v(argv[1], "heatdis");
	std::unique_ptr<double[]> h(new double[cells]);
	std::vector<double> g(cells);

	varve_protect(v.get(), "h", h.get(), cells * sizeof(double));
	varve_protect(v.get(), "g", g.data(), cells * sizeof(double));
	for (int step = 1; step <= 3; step++) {
		for (std::size_t i = 0; i < cells; i++) {
			h[i] = static_cast<double>(i * 7919 % 10007) + step;
			g[i] = h[i] * static_cast<double>(i) + step;
		}
		varve_checkpoint(v.get());
	}
	return 0; /* the memory goes first, then the session */
}
