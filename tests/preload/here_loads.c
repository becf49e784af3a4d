/* A program that loads libraries from a folder while its threads allocate, and prints where they come to lie, for test_here.py. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 4 };

static void *allocate(void *arg)
{
	char line[100], *p[100];
	FILE *f = fopen("/proc/self/stat", "r"); /* and the C library does, for this thread */

	for (int i = 0; i < 100; i++)
		p[i] = memset(malloc(1000 + (size_t)i * 100), 1, 10);
	if (fgets(line, sizeof(line), f))
		fclose(f);
	return arg ? p[0] : NULL;
}

static void *load(const char *folder, int i)
{
	char path[4096];
	void *library, *part;

	snprintf(path, sizeof(path), "%s/libpart%d.so", folder, i);
	library = dlopen(path, RTLD_NOW);
	part = library ? dlsym(library, "part") : NULL;
	if (!part)
		exit(3);
	return part;
}

int main(int argc, char **argv)
{
	pthread_t thread[PARTS];

	for (int i = 0; i < PARTS; i++) {
		pthread_create(&thread[i], NULL, allocate, NULL);
		printf("%p\n", load(argv[1], i));
	}
	for (int i = 0; i < PARTS; i++)
		pthread_join(thread[i], NULL);
	return argc < 2;
}
