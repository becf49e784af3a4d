/* A program that shuts parts of its heap by mprotect before its first call, for test_here.py: here_protected_pages STEPS [NAP_US]
 *
 * What is in there differs from run to run until it is put back, so that it is seen whether it was. $PROTECT_MORE: pages that nobody can read, too, in this run.
 * Prints what it has come to, or what is wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { PAGES = 64, READ_ONLY = 10, SOME = 7, OWN = 30, HIDDEN = 40 };

struct state {
	long step, sum;
	unsigned char seed; /* of the run that it began with */
	unsigned char *table;
};

static size_t page;

static void fill(unsigned char *p, unsigned char seed)
{
	for (size_t i = 0; i < page; i++)
		p[i] = (unsigned char)(seed + i * 7);
}

static int differs(const unsigned char *p, unsigned char seed)
{
	for (size_t i = 0; i < page; i++)
		if (p[i] != (unsigned char)(seed + i * 7))
			return 1;
	return 0;
}

static int has_rights(const unsigned char *p, const char *rights)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t lo = 0, hi = 0;
	char line[600], mode[8] = "";

	while (f && hi <= (uintptr_t)p && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &lo, &hi, mode) != 3)
			return 0;
	if (f)
		fclose(f);
	return lo <= (uintptr_t)p && (uintptr_t)p < hi && strncmp(mode, rights, 2) == 0;
}

/* The table as it must be now; `own` is what this run has made of its own part. */
static const char *look(const struct state *s, unsigned char own)
{
	for (size_t i = 0; i < PAGES; i++) {
		unsigned char *p = s->table + i * page;
		int hidden = i >= HIDDEN && i < HIDDEN + SOME && getenv("PROTECT_MORE"), shut = (i >= READ_ONLY && i < READ_ONLY + SOME) || i == OWN;

		if (!has_rights(p, hidden ? "--" : shut ? "r-" : "rw"))
			return "rights";
		if (hidden)
			mprotect(p, page, PROT_READ);
		if (differs(p, (unsigned char)(i == OWN ? own : s->seed + i)))
			return i == OWN ? "the part that is kept out" : "the table";
		if (hidden)
			mprotect(p, page, PROT_NONE);
	}
	return NULL;
}

static struct state *begin(unsigned char own)
{
	struct state *s = calloc(1, sizeof(*s));

	s->seed = own;
	s->table = aligned_alloc(page, PAGES * page);
	for (size_t i = 0; i < PAGES; i++)
		fill(s->table + i * page, (unsigned char)(i == OWN ? own : own + i));
	varve_except_here(s->table + OWN * page, page);
	mprotect(s->table + READ_ONLY * page, SOME * page, PROT_READ);
	mprotect(s->table + OWN * page, page, PROT_READ);
	if (getenv("PROTECT_MORE"))
		mprotect(s->table + HIDDEN * page, SOME * page, PROT_NONE);
	varve_root_here(s);
	return s;
}

int main(int argc, char **argv)
{
	long steps = argc > 1 ? atol(argv[1]) : 10;
	useconds_t nap = argc > 2 ? (useconds_t)atol(argv[2]) : 0;
	unsigned char own = (unsigned char)getpid();
	struct state *s;

	page = (size_t)sysconf(_SC_PAGESIZE);
	s = begin(own);
	while (s->step < steps) {
		int rc;

		s->sum = s->sum * 31 + s->step++;
		rc = varve_checkpoint_here();
		if (rc == 1 || s->step == steps) {
			const char *wrong = look(s, own);

			if (wrong)
				return printf("wrong: %s\n", wrong) > 0;
		}
		if (rc == 1 && getenv("PROTECT_MORE")) { /* or no checkpoint could be taken */
			mprotect(s->table + HIDDEN * page, SOME * page, PROT_READ | PROT_WRITE);
			unsetenv("PROTECT_MORE");
		}
		usleep(nap);
	}
	printf("%ld\n", s->sum);
	return 0;
}
