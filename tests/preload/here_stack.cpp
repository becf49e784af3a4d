// Containers of the loop's body, which only the stack points to at the checkpoint. Arguments and output as those of here_scratch.c.
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

	uint64_t draw()
	{
		random ^= random << 13;
		random ^= random >> 7;
		return random ^= random << 17;
	}

	void advance()
	{
		std::vector<std::vector<double>> field(20 + draw() % 10, std::vector<double>(4000 + draw() % 1000, double(step)));
		std::map<uint64_t, std::string> tree;
		std::shared_ptr<std::string> shared = std::make_shared<std::string>(size_t(300000), 'x');

		for (int i = 0; i < 2000; i++) {
			tree[draw()] = std::string(1 + draw() % 120, char('a' + i % 26));
			words[draw() % 2000] = std::string(1 + draw() % 120, char('a' + i % 26));
			words.erase(draw() % 2000);
		}
		step++;
		if (varve_checkpoint_here() < 0)
			exit(4);
		sum = sum * 31 + words.size() + tree.size() + field.size() + shared->size();
	}
};

int main(int argc, char **argv)
{
	long last = argc > 1 ? atol(argv[1]) : 10;
	auto world = std::make_unique<World>();
	char line[200];

	varve_root_here(world.get());
	if (varve_checkpoint_here() < 0)
		return 4;
	while (world->step < last)
		world->advance();
	printf("%ld %llx\n", world->step, (unsigned long long)world->random);
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			fputs(line, stdout);
}
