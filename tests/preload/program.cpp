// iostream reads large pieces past its buffer, by read(2) from inside the C++ library. With -DFENCED into shut pages.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>

#ifdef FENCED
#include "program_write_protect.h"
#else
#define shut(p, n) (void)0
#define was_asked() 1
#endif

enum { ROOM = 1 << 20 };
alignas(1 << 16) static char buffer[ROOM];

int main(int, char **argv)
{
	std::ifstream in(argv[0], std::ios::binary);
	shut(buffer, ROOM);
	in.read(buffer, 50000);
	bool ok = in.gcount() > 4096 && std::memcmp(buffer, "\177ELF", 4) == 0 && was_asked();
	std::printf("%ld bytes\n", static_cast<long>(in.gcount()));
	return ok ? 0 : 1;
}
