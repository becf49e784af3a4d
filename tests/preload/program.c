// A program that reads in three ways into one buffer. With -DFENCED the buffer is in shut pages each time.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef FENCED
#include "program_write_protect.h"
#else
#define shut(p, n) (void)0
#define was_asked() 1
#endif

#define CHECK(e) ((e) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #e), exit(1)))

enum { ROOM = 1 << 20 };
static char buffer[ROOM] __attribute__((aligned(1 << 16)));

int main(int argc, char **argv)
{
	size_t n = 200000 + (size_t)(argc - 1); // not known to the compiler, or it would not check
	int ends[2];
	FILE *f = fopen(argv[0], "r");
	CHECK(f && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	shut(buffer, ROOM);
	size_t got = fread(buffer, 1, n, f);
	CHECK(got > 4096 && memcmp(buffer, "\177ELF", 4) == 0 && was_asked());
	shut(buffer, ROOM);
	CHECK(fseek(f, 0, SEEK_SET) == 0 && lseek(fileno(f), 0, SEEK_SET) == 0);
	CHECK(read(fileno(f), buffer, n) == (ssize_t)got && memcmp(buffer, "\177ELF", 4) == 0 && was_asked());
	shut(buffer, ROOM);
	CHECK(write(ends[1], "hello", 6) == 6);
	CHECK(recv(ends[0], buffer, n, 0) == 6 && strcmp(buffer, "hello") == 0 && was_asked());
	return 0;
}
