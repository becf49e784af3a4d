/* Writes past the tracker: what the kernel lets through unseen is found by `audit`, named, and compared from then on; what it
 * does see costs nothing. */
#include "support/gen.h"
#include "support/must.h"
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { PAGE = 4096, LEN = 64 * PAGE };

struct run {
	varve *v;
	uint8_t *p, read[LEN];
	uint64_t seed;
};

static bool begin(struct run *u, const char *tracker, const char *audit)
{
	char options[200];
	int rc;

	*u = (struct run){ .seed = 3 };
	must_begin("tracker=%s %s", tracker, audit);
	snprintf(options, sizeof(options), "tracker=%s log=error %s", tracker, audit);
	rc = varve_open("mem:audit", "run", options, &u->v);
	MUST(rc == 0 || rc == VARVE_ENOTSUP);
	if (rc)
		return false;
	u->p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(u->p != MAP_FAILED && varve_protect(u->v, "p", u->p, LEN) == 0);
	gen_bytes(&u->seed, u->p, LEN);
	for (int e = 0; e < 3; e++) { /* until it is watched */
		u->p[e * PAGE]++;
		MUST(varve_checkpoint(u->v) == 0 && varve_wait(u->v, varve_epoch(u->v)) == 0);
	}
	return true;
}

static bool is_exact(struct run *u)
{
	MUST(varve_wait(u->v, varve_epoch(u->v)) == 0);
	MUST(varve_restart_region(u->v, VARVE_LATEST, "p", u->read, LEN) == 0);
	return memcmp(u->p, u->read, LEN) == 0;
}

static void end(struct run *u)
{
	MUST(varve_close(u->v) == 0);
	munmap(u->p, LEN);
}

/* Past the wrapper, pages become zero, which no fence sees. */
static void drop_unseen(struct run *u, size_t page)
{
	MUST(syscall(SYS_madvise, u->p + page * PAGE, (size_t)PAGE, MADV_DONTNEED) == 0);
}

static void missed(const char *tracker)
{
	struct run u;

	if (!begin(&u, tracker, "audit=20000"))
		return;
	drop_unseen(&u, 40);
	MUST(varve_checkpoint(u.v) == VARVE_EMISMATCH);
	MUST(strstr(varve_last_error(), "'p'") && strstr(varve_last_error(), "163840") && strstr(varve_last_error(), tracker));
	MUST(varve_checkpoint(u.v) == 0); /* compared as a whole from now on */
	MUST(is_exact(&u));
	drop_unseen(&u, 41);
	MUST(varve_checkpoint(u.v) == 0);
	MUST(is_exact(&u));
	end(&u);
}

/* Does the test's way past the tracker work at all? */
static void unaudited(const char *tracker)
{
	struct run u;

	if (!begin(&u, tracker, "audit=0"))
		return;
	drop_unseen(&u, 40);
	MUST(varve_checkpoint(u.v) == 0);
	MUST(!is_exact(&u));
	end(&u);
}

/* The kernel's own writes, on behalf of this process or another, are seen by wpasync. */
static void seen(const char *tracker)
{
	uint8_t bytes[2 * PAGE];
	struct iovec here = { bytes, sizeof(bytes) }, there;
	struct run u;
	int fd;

	if (!begin(&u, tracker, "audit=20000"))
		return;
	memset(bytes, 0x5a, sizeof(bytes));
	there = (struct iovec){ u.p + 10 * PAGE + 50, sizeof(bytes) };
	MUST(process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t)sizeof(bytes));
	MUST(varve_checkpoint(u.v) == 0 && is_exact(&u));
	fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
	MUST(fd >= 0 && pwrite(fd, bytes, sizeof(bytes), (off_t)(uintptr_t)(u.p + 30 * PAGE)) == (ssize_t)sizeof(bytes));
	close(fd);
	MUST(varve_checkpoint(u.v) == 0 && is_exact(&u));
	drop_unseen(&u, 50);
	MUST(varve_checkpoint(u.v) == 0 && is_exact(&u));
	MUST(mremap(u.p + 20 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, u.p + 60 * PAGE) == u.p + 60 * PAGE);
	MUST(mmap(u.p + 20 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	MUST(varve_checkpoint(u.v) == 0 && is_exact(&u));
	end(&u);
}

int main(void)
{
	missed("mprotect");
	unaudited("mprotect");
	seen("wpasync");
	seen("auto");
	seen("digest");
	return 0;
}
