// ctest: TIMEOUT 300 RUN_SERIAL
/* Device memory as regions of a process that forks, that uses another device, and that is one of several ranks. */
#include "gpu/regions.h"
#include "support/grain_job.h"
#include <sys/wait.h>

static void child(varve *v, int how)
{
	if (how)
		varve_close(v); /* a session of its parent's: whatever it says, it leaves the device alone */
	_exit(0);
}

static void forked(void)
{
	enum { LEN = 1 << 20 };
	struct buf b;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("fork");
	place_path(store, "fork");
	get(&b, LEN, true);
	noise(b.mirror, LEN);
	push(&b);
	OK(varve_open(store, "job", "grain=128", &v));
	OK(varve_protect(v, "p", b.p, LEN));
	OK(varve_checkpoint(v));
	for (int how = 0; how < 2; how++) {
		pid_t pid;
		int status = -1;

		OK(varve_wait(v, varve_epoch(v)));
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			child(v, how);
		CHECK(waitpid(pid, &status, 0) == pid);
		MUST(status == 0);
		b.mirror[1000 * how]++;
		push(&b);
		MUST(new_bytes(v) == 128);
		check_stored(v, "p", b.mirror, LEN);
	}
	OK(varve_close(v));
	place_remove(store);
	put(&b);
}

/* Regions of several devices, whichever is the program's current one. */
static void devices(void)
{
	enum { LEN = 500001 };
	struct buf b[2];
	char store[PLACE_MAX];
	varve *v = NULL;

	if (device_count() < 2) {
		fprintf(stderr, "only one device: regions of two are not tried\n");
		return;
	}
	must_begin("two devices");
	place_path(store, "devices");
	OK(varve_open(store, "job", "grain=128", &v));
	for (int i = 0; i < 2; i++) {
		device_choose(i);
		get(&b[i], LEN, true);
		noise(b[i].mirror, LEN);
		push(&b[i]);
		OK(varve_protect(v, i ? "second" : "first", b[i].p, LEN));
	}
	for (int e = 0; e < 4; e++) {
		device_choose(e % 2);
		b[0].mirror[e * 1000]++;
		b[1].mirror[e * 2000]++;
		push(&b[0]);
		push(&b[1]);
		OK(varve_checkpoint(v));
		MUST(device_current() == e % 2);
	}
	for (int i = 0; i < 2; i++)
		scramble(&b[i]);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	for (int i = 0; i < 2; i++)
		MUST(holds(&b[i], b[i].mirror));
	OK(varve_close(v));
	device_choose(0);
	for (int i = 0; i < 2; i++)
		put(&b[i]);
	place_remove(store);
}

/* All have the same, then each has something of its own. */
static void work(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	struct varve_comm mine = *comm;
	struct varve_stats st;
	struct buf b;
	varve *v = NULL;

	mine.any_thread = j->any_thread;
	OK(varve_open_comm(&mine, j->store, "job", j->options, &v));
	get(&b, SHARED, comm->rank != 1); /* one has it in the host's memory */
	grain_job_fill(b.mirror);
	OK(varve_protect(v, "p", b.p, SHARED));
	for (int e = 0; e < 3; e++) {
		if (e == 1)
			b.mirror[1000 * (comm->rank + 1)]++;
		if (e == 2)
			memset(b.mirror + 300000 + 1000 * comm->rank, 7, 5000);
		push(&b);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		OK(varve_stats(v, &st));
		if (e == 0)
			atomic_fetch_add(&j->stored, st.bytes_new);
		check_stored(v, "p", b.mirror, SHARED);
	}
	scramble(&b);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(holds(&b, b.mirror));
	b.mirror[9]++;
	push(&b);
	OK(varve_checkpoint(v));
	OK(varve_stats(v, &st));
	MUST(st.bytes_new + st.bytes_dup_ranks + st.bytes_dup_time <= 2 * 256);
	OK(varve_close(v));
	put(&b);
}

int main(void)
{
	space = device_space();
	seed = 88172645463325252ull;
	forked();
	devices();
	grain_job_run(work);
	return 0;
}
