/* Pointers in the state that lead to memory which is not: the arguments say which. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <varve/varve_here.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif
#ifdef WITH_CUDA
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **out, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uintptr_t *out, size_t n);
#endif

static struct state {
	long step;
	void *pad[3], *handle; /* byte 32 */
	int (*compare)(const char *, const char *);
	FILE *standard;
} *st;
static void *variable;

static void *shared(void)
{
	char name[] = "/dev/shm/varve-stray-XXXXXX";
	int fd = mkstemp(name);
	char *p = fd < 0 || ftruncate(fd, 65536) ? NULL : mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	unlink(name);
	return p == MAP_FAILED ? NULL : p + 1000;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	FILE *f = fopen("/dev/null", "w");

	st = calloc(1, sizeof(*st));
	st->compare = strcmp; /* these come to lie where they lay */
	st->standard = stdout;
	if (strcmp(what, "stream") == 0 || strcmp(what, "except") == 0)
		st->handle = f;
	if (strcmp(what, "except") == 0)
		varve_except_here(&st->handle, sizeof(st->handle));
	if (strcmp(what, "closed") == 0) {
		st->handle = f;
		fclose(f);
	}
	if (strcmp(what, "variable") == 0) {
		variable = f;
		varve_protect_here("variable", &variable, sizeof(variable));
	}
	if (strcmp(what, "shared") == 0)
		st->handle = shared();
#ifdef WITH_CUDA
	uintptr_t device;
	void *context;
	if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 || cuCtxSetCurrent(context) != 0 || cuMemAlloc_v2(&device, 4096) != 0)
		return 5;
	st->handle = (void *)(device + 16);
	if (strcmp(what, "beside") == 0)
		st->handle = (void *)(device + (1 << 20)); /* reserved, and nothing is there */
#endif
#ifdef WITH_MPI
	MPI_Comm other;
	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	puts(sizeof(MPI_Comm) == sizeof(void *) ? "pointer" : "number");
	memcpy(&st->pad[0], &(MPI_Comm){ MPI_COMM_WORLD }, sizeof(MPI_Comm));
	memcpy(&st->handle, &other, sizeof(MPI_Comm));
#endif
	for (; st->step < 3; st->step++)
		if (varve_checkpoint_here() < 0)
			return 4;
#ifdef WITH_MPI
	MPI_Finalize();
#endif
	return 0;
}
