/* Loads libvarve.so late, for test_late.py: late LIBVARVE STORE TLS_LIBRARY...
 * After those libraries, which use up the room for thread-local storage that there is for libraries like them, and, with LATE_KEYS, after many keys. Then it takes checkpoints, while threads that
 * are older than the library write into what is being stored. Prints "good". */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve.h>

enum { THREADS = 4, LEN = 4 << 20, KEYS = 100 };

static char *memory;
static volatile int go, stop;

static void *write_all_over(void *arg)
{
	unsigned r = (unsigned)(size_t)arg + 1;

	while (!go)
		usleep(1000);
	while (!stop) {
		r = r * 1664525 + 1013904223;
		memory[r % LEN] = (char)r;
		free(malloc(r % 1000)); /* a page may be asked for in here, too */
	}
	return NULL;
}

#define FIND(name) __typeof__(name) *p_##name = (__typeof__(name) *)dlsym(library, #name)

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	int loaded = 0, rc = 0;
	pthread_key_t key;
	void *library;
	varve *v = NULL;

	for (int i = 0; i < (getenv("LATE_KEYS") ? KEYS : 0); i++)
		pthread_key_create(&key, NULL);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, write_all_over, (void *)i);
	for (int i = 3; i < argc; i++)
		loaded += dlopen(argv[i], RTLD_NOW) != NULL;
	if (loaded == argc - 3)
		return puts("there was room for all of them"), 1;
	library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		return puts(dlerror()), 1;
	FIND(varve_open);
	FIND(varve_protect);
	FIND(varve_checkpoint);
	FIND(varve_close);
	FIND(varve_last_error);
	memory = malloc(LEN);
	memset(memory, 1, LEN);
	rc = p_varve_open(argv[2], "late", NULL, &v);
	if (rc == 0)
		rc = p_varve_protect(v, "memory", memory, LEN);
	go = 1;
	for (int i = 0; rc == 0 && i < 5; i++)
		rc = p_varve_checkpoint(v);
	if (rc == 0)
		rc = p_varve_close(v);
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	puts(rc ? p_varve_last_error() : "good");
	return rc != 0;
}
