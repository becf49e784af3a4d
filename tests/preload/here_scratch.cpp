// Containers that are emptied and filled again, and temporary ones of all sizes. Arguments and output as those of here_scratch.c.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <varve/varve_here.h>
#include <vector>

struct World {
	long step = 0;
	uint64_t random = 88172645463325252u, sum = 0;
	std::map<uint64_t, std::string> words;
	std::vector<std::vector<double>> field;

	uint64_t draw()
	{
		random ^= random << 13;
		random ^= random >> 7;
		return random ^= random << 17;
	}

	void advance()
	{
		for (int i = 0; i < 2000; i++) {
			words[draw() % 10000] = std::string(1 + draw() % 120, char('a' + i % 26));
			words.erase(draw() % 10000);
		}
		for (int i = 0; i < 20; i++) { // they grow by doubling, and are gone
			std::vector<uint64_t> scratch;
			for (uint64_t n = uint64_t(1) << (1 + draw() % 18); n; n--)
				scratch.push_back(n);
			std::map<uint64_t, uint64_t> tree;
			for (uint64_t k = draw() % 2000; k; k--)
				tree[draw()] = k;
			sum = sum * 31 + scratch.size() + tree.size();
		}
		if (step % 8 == 0)
			field.assign(40 + draw() % 10, std::vector<double>(4000 + draw() % 1000, double(step)));
		sum = sum * 31 + words.size() + uint64_t(field.back().back());
		step++;
	}
};

int main(int argc, char **argv)
{
	long last = argc > 1 ? atol(argv[1]) : 10;
	auto world = std::make_unique<World>();
	char line[200];

	while (world->step < last) {
		world->advance();
		if (varve_checkpoint_here() < 0)
			return 4;
	}
	printf("%ld %llx\n", world->step, (unsigned long long)world->sum);
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			fputs(line, stdout);
}
