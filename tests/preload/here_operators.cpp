/* C++'s operators, every form of them; prints "good". With -DOWN the program has two of its own, with a header in front of each object: C++'s library has
 * the others call these. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

static long live;

#ifdef OWN
void *operator new(size_t n)
{
	long *p = (long *)malloc(n + 32);

	if (!p)
		throw std::bad_alloc();
	*p = 0x5eed;
	live++;
	return p + 4;
}

void operator delete(void *q) noexcept
{
	long *p = (long *)q - 4;

	if (!q)
		return;
	if (*p != 0x5eed) {
		puts("deleted, but not made by new");
		exit(1);
	}
	*p = 0;
	live--;
	free(p);
}
#endif

struct big {
	char c[300];
};

struct alignas(256) wide {
	char c[300];
};

template <typename T> static bool forms()
{
	T *a = new T, *b = new T[10], *c = new (std::nothrow) T, *d = new (std::nothrow) T[10];
	bool ok = true;

	for (T *p : { a, b, c, d }) {
		ok = ok && p && (uintptr_t)p % alignof(T) == 0;
		memset(p, 1, sizeof(*p));
	}
	delete a;
	delete[] b;
	delete c;
	delete[] d;
	operator delete(new (std::nothrow) char, std::nothrow);
	return ok;
}

static bool refuses()
{
	volatile size_t much = SIZE_MAX / 4;

	try {
		delete[] new char[much];
		return false;
	} catch (const std::bad_alloc &) {
		return new (std::nothrow) char[much] == nullptr;
	}
}

int main()
{
	long others = live; /* of libraries */
	bool ok = refuses();

	for (int i = 0; i < 1000; i++) {
		std::vector<std::string> v(10, "a string that is longer than others");
		auto p = std::make_unique<big>();

		ok = ok && forms<big>() && forms<wide>() && forms<char>();
	}
	puts(ok && live == others ? "good" : "bad");
	return !ok;
}
