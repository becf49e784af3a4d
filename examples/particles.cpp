/* Particles in a box. They fly, some decay, and now and then a source emits new ones: the vectors grow and shrink. Kill the program
 * whenever you like and start it again: it ends with the same bits as one that was never disturbed.
 *
 *	build/examples/particles ckpt 2000 10             a store, steps, steps from checkpoint to checkpoint
 *
 * What varve needs is in main(). */
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <varve/varve.hpp>
#include <vector>

using vector3 = std::array<double, 3>;

/* A generator of pseudo-random numbers (splitmix64): its state is saved like anything else. */
struct dice {
	std::uint64_t state = 1;

	double roll()
	{
		std::uint64_t z = state += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
	}
};

struct box {
	std::vector<vector3> place, speed;
	std::vector<std::uint64_t> born; /* the step in which it was */
	dice d;

	void emit(std::uint64_t step, int n)
	{
		for (; n > 0; n--) {
			place.push_back({ 0.5, 0.5, 0.5 });
			speed.push_back({ d.roll() - 0.5, d.roll() - 0.5, d.roll() - 0.5 });
			born.push_back(step);
		}
	}

	void fly()
	{
		for (std::size_t i = 0; i < place.size(); i++)
			for (std::size_t k = 0; k < 3; k++) {
				place[i][k] += 0.01 * speed[i][k];
				if (place[i][k] < 0 || place[i][k] > 1)
					speed[i][k] = -speed[i][k];
			}
	}

	void decay(double share)
	{
		for (std::size_t i = place.size(); i-- > 0;)
			if (d.roll() < share) {
				place[i] = place.back(), place.pop_back();
				speed[i] = speed.back(), speed.pop_back();
				born[i] = born.back(), born.pop_back();
			}
	}

	void advance(std::uint64_t step)
	{
		fly();
		decay(0.01);
		if (step % 50 == 0)
			emit(step, 2000);
		if (step % 400 == 399) { /* memory is given back, too */
			place.shrink_to_fit();
			speed.shrink_to_fit();
			born.shrink_to_fit();
		}
	}

	/* Two boxes with the same sum are the same bit for bit. */
	std::uint64_t checksum() const
	{
		std::uint64_t sum = d.state, bits;

		for (std::size_t i = 0; i < place.size(); i++)
			for (double x : { place[i][0], place[i][1], place[i][2], speed[i][0], speed[i][1], speed[i][2] }) {
				std::memcpy(&bits, &x, sizeof(bits));
				sum = (sum << 7 | sum >> 57) ^ bits ^ born[i];
			}
		return sum;
	}
};

static std::uint64_t number(const char *text)
{
	char *end = nullptr;
	unsigned long long n = std::strtoull(text, &end, 10);

	if (!*text || *end || !n)
		throw std::invalid_argument("usage: particles [STORE [STEPS [EVERY]]]");
	return n;
}

int main(int argc, char **argv)
try {
	const std::uint64_t steps = argc > 2 ? number(argv[2]) : 2000, every = argc > 3 ? number(argv[3]) : 10;
	std::uint64_t step = 0;
	box b;

	varve::session s(argc > 1 ? argv[1] : "ckpt", "particles");
	s.protect("step", step);
	s.protect("dice", b.d);
	s.protect("place", b.place);
	s.protect("speed", b.speed);
	s.protect("born", b.born);
	if (s.restart())
		std::printf("restarted from epoch %llu at step %llu with %zu particles\n", static_cast<unsigned long long>(s.epoch()),
			    static_cast<unsigned long long>(step), b.place.size());
	while (step < steps) {
		do
			b.advance(step++);
		while (step % every && step < steps);
		if (s.due())
			s.checkpoint();
	}
	s.close();
	std::printf("checksum %016llx after step %llu, %zu particles\n", static_cast<unsigned long long>(b.checksum()),
		    static_cast<unsigned long long>(step), b.place.size());
	return 0;
} catch (const std::exception &e) {
	std::fprintf(stderr, "particles: %s\n", e.what());
	return 1;
}
