/* Loads libvarve.so, takes checkpoints and unloads it, for test_late.py: unload LIBVARVE STORE. The threads that took them end after dlclose, and faults of
 * the program come after it, too: both once led into code that was gone. Each round once left mappings behind. Prints "good". */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <varve/varve.h>

enum { ROUNDS = 6, LEN = 1 << 20 };

static const char *library_path, *store;
static pthread_barrier_t closed;
static sigjmp_buf back;

#define FIND(name) __typeof__(name) *p_##name = (__typeof__(name) *)dlsym(library, #name)

static void *take_checkpoints(void *arg)
{
	void *library = dlopen(library_path, RTLD_NOW);
	char *memory = malloc(LEN);
	int rc = library ? 0 : -1;
	varve *v = NULL;

	memset(memory, *(int *)arg, LEN);
	if (rc == 0) {
		FIND(varve_open);
		FIND(varve_protect);
		FIND(varve_checkpoint);
		FIND(varve_close);
		rc = p_varve_open(store, "unload", "buffer=64KiB tracker=mprotect", &v) | p_varve_protect(v, "memory", memory, LEN);
		for (int i = 0; rc == 0 && i < 2; i++) {
			rc = p_varve_checkpoint(v);
			memory[i * 5000]++; /* stops at a fence */
		}
		rc |= p_varve_close(v) | dlclose(library);
	}
	free(memory);
	*(int *)arg = rc;
	pthread_barrier_wait(&closed);
	return NULL; /* its destructors run now */
}

static void jump(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

/* Handlers of the program are called, whoever stood before them meanwhile. */
static int fault(char *shut)
{
	if (sigsetjmp(back, 1) == 0) {
		*(volatile char *)shut = 1;
		return -1;
	}
	return 0;
}

static int count_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0, c;

	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	char *shut = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int mappings = 0;

	if (argc < 3 || shut == MAP_FAILED)
		return 2;
	library_path = argv[1];
	store = argv[2];
	pthread_barrier_init(&closed, NULL, 2);
	signal(SIGSEGV, jump);
	signal(SIGBUS, jump);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		int rc = i;

		pthread_create(&thread, NULL, take_checkpoints, &rc);
		pthread_barrier_wait(&closed);
		pthread_join(thread, NULL);
		if (rc || fault(shut))
			return printf("round %d: %d\n", i, rc), 1;
		if (i == 1)
			mappings = count_mappings();
	}
	if (count_mappings() > mappings + 2)
		return printf("%d mappings, %d after two rounds\n", count_mappings(), mappings), 1;
	puts("good");
	return 0;
}
