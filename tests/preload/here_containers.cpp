// The same in C++: containers of the standard library that grow and shrink, objects with virtual functions, shared ones.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <varve/varve_here.h>
#include <vector>

struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
};

struct Box : Shape {
	double a, b;
	Box(double x, double y) : a(x), b(y) {}
	double area() const override { return a * b; }
};

struct Polygon : Shape {
	std::vector<double> corner;
	explicit Polygon(size_t n) : corner(n, 0.5) {}
	double area() const override
	{
		double sum = 0;
		for (double c : corner)
			sum += c;
		return sum;
	}
};

struct World {
	long step = 0;
	uint64_t random = 88172645463325252u, sum = 0;
	std::map<std::string, std::vector<double>> series;
	std::unordered_map<uint64_t, std::string> words;
	std::deque<std::unique_ptr<Shape>> shapes;
	std::list<std::shared_ptr<std::string>> shared;
	std::set<uint64_t> numbers;
	std::vector<std::function<uint64_t(uint64_t)>> rules;

	uint64_t draw()
	{
		random ^= random << 13;
		random ^= random >> 7;
		return random ^= random << 17;
	}

	void advance()
	{
		for (int i = 0; i < 60; i++) {
			uint64_t r = draw();
			series["series " + std::to_string(r % 40)].push_back(double(r % 1000));
			words[r % 500] += char('a' + r % 26);
			if (r % 3)
				shapes.push_back(std::make_unique<Box>(r % 7, r % 11));
			else
				shapes.push_back(std::make_unique<Polygon>(r % 300));
			numbers.insert(r % 10000);
			if (shapes.size() > 500)
				shapes.pop_front();
			shared.push_back(shared.empty() || r % 5 == 0 ? std::make_shared<std::string>(r % 90, 'x') : shared.back());
			if (shared.size() > 300)
				shared.pop_front();
			if (r % 17 == 0)
				words.erase(r % 500);
			if (r % 23 == 0)
				numbers.erase(numbers.begin());
		}
		if (step % 10 == 0) {
			uint64_t k = draw();
			rules.emplace_back([k](uint64_t x) { return x * 31 + k; });
		}
		for (auto &rule : rules)
			sum = rule(sum);
		for (auto &s : shapes)
			sum += uint64_t(s->area() * 4);
		for (auto &[name, v] : series)
			sum = sum * 7 + name.size() + v.size() + uint64_t(v.back());
		for (auto &p : shared)
			sum += p->size() + size_t(p.use_count());
		step++;
	}
};

int main(int argc, char **argv)
{
	long steps = argc > 1 ? atol(argv[1]) : 50;
	auto nap = useconds_t(argc > 2 ? atol(argv[2]) : 0);
	auto world = std::make_unique<World>();

	try { // what cannot be had is thrown, as always
		volatile size_t much = SIZE_MAX / 4;
		char *volatile p = new char[much];
		return p ? 5 : 6;
	} catch (const std::bad_alloc &) {
	}
	while (world->step < steps) {
		world->advance();
		if (varve_checkpoint_here() < 0)
			return 4;
		usleep(nap);
	}
	uint64_t sum = world->sum;
	for (auto &[k, w] : world->words)
		sum += k * w.size();
	for (uint64_t n : world->numbers)
		sum = sum * 3 + n;
	printf("%ld %llx\n", world->step, (unsigned long long)sum);
}
