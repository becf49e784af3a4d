/* Stands in for libvarve_preload.so where only `varve run` is tested: it keeps the terms of engine/run_protocol.h, but of the program's memory it saves only what the
 * program shows it as `run_state`. */
#include "engine/run_protocol.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve.h>
#ifdef MPI
#include <varve/varve_mpi.h>
#endif

static varve *v;
static int silent;

__attribute__((format(printf, 1, 2))) static void tell(const char *fmt, ...)
{
	const char *path = getenv(VV_RUN_PROTOCOL_EVENTS);
	int fd = path && !silent ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1, n;
	char line[1500];
	va_list ap;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (fd < 0)
		return;
	if (write(fd, line, (size_t)n) != n)
		abort();
	close(fd);
}

static void done(void *arg, uint64_t epoch, int rc)
{
	(void)arg;
	if (getenv("RUN_SLOW")) /* durable, but nobody is told yet */
		usleep((useconds_t)atoi(getenv("RUN_SLOW")) * 1000);
	if (rc == 0 && getenv("RUN_MUTE")) /* it dies before it can tell */
		return;
	if (rc == 0)
		tell("durable %llu\n", (unsigned long long)epoch);
	else
		tell("failed %llu %s\n", (unsigned long long)epoch, varve_last_error());
}

static int open_session(void)
{
	const char *store = getenv(VV_RUN_PROTOCOL_STORE), *lineage = getenv(VV_RUN_PROTOCOL_LINEAGE);

#ifdef MPI
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	silent = rank != 0;
	return varve_open_mpi(MPI_COMM_WORLD, store, lineage, NULL, &v);
#else
	return varve_open(store, lineage, NULL, &v);
#endif
}

static void begin(void)
{
	void **p = dlsym(RTLD_DEFAULT, "run_state");
	size_t *n = dlsym(RTLD_DEFAULT, "run_state_len");
	const char *from = getenv(VV_RUN_PROTOCOL_RESTART);
	uint64_t epoch = from && from[0] >= '0' && from[0] <= '9' ? strtoull(from, NULL, 10) : VARVE_LATEST;
	int rc = 0;

	if (open_session() < 0 || varve_protect(v, "state", *p, *n) < 0) {
		tell("unable 0 %s\n", varve_last_error());
		v = NULL;
		return;
	}
	varve_on_done(v, done, NULL);
	if (!from || strcmp(from, "none") != 0)
		rc = varve_restart(v, epoch);
	if (rc < 0) {
		tell("%s %llu %s\n", rc == VARVE_EDAMAGED ? "damaged" : "refused", (unsigned long long)(epoch == VARVE_LATEST ? varve_epoch(v) : epoch),
		     varve_last_error());
		_exit(VV_RUN_PROTOCOL_REFUSED);
	}
	tell(rc ? "restored %llu\n" : "fresh %llu\n", (unsigned long long)varve_epoch(v));
}

void varve_checkpoint_here(void);

void varve_checkpoint_here(void)
{
	static int begun;

	if (!begun++) {
		begin();
		return;
	}
	if (v && varve_due(v) && varve_checkpoint(v) == 0)
		tell("taken %llu\n", (unsigned long long)varve_epoch(v));
}

#ifndef MPI /* there the last epoch may be lost: closing is for all ranks, before MPI_Finalize */
__attribute__((destructor)) static void finish(void)
{
	varve_close(v);
}
#endif
