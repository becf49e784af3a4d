/* Makes the mistakes that docs/troubleshooting.md tells of, and prints what the library says:
 *
 *	trouble_check MISTAKE
 */
#include "vv_test.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve.h>

enum { BYTES = 8 << 20 };

static varve *v;
static uint8_t *field;

static void begin(const char *options)
{
	field = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(field != MAP_FAILED);
	for (size_t i = 0; i < BYTES; i++)
		field[i] = (uint8_t)(i * 2654435761u >> 13);
	CHECK(varve_open("store", "trouble", options, &v) == 0);
	CHECK(varve_protect(v, "field", field, BYTES) == 0);
}

static int freed(void)
{
	begin(NULL);
	CHECK(mprotect(field, BYTES, PROT_NONE) == 0); /* a hole could be filled again by what a checkpoint maps */
	return varve_checkpoint(v);
}

static int no_session(void)
{
	return varve_checkpoint(NULL);
}

static int child(void)
{
	int status;
	pid_t pid;

	begin(NULL);
	pid = fork();
	if (pid == 0)
		exit(varve_checkpoint(v) < 0 && puts(varve_last_error()) >= 0 ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return 0;
}

static int no_checkpoint(void)
{
	struct varve_stats st;

	begin(NULL);
	return varve_stats(v, &st);
}

static int no_out(void)
{
	begin(NULL);
	return varve_stats(v, NULL);
}

static int no_epoch(void)
{
	struct varve_region_info info;

	begin(NULL);
	return varve_region(v, VARVE_LATEST, "field", &info);
}

static int odd_grain(void)
{
	begin(NULL);
	return varve_refine(v, "field", NULL, 100);
}

static int full(void)
{
	struct rlimit little = { 1 << 20, 1 << 20 };

	begin("mode=sync codec=none");
	signal(SIGXFSZ, SIG_IGN);
	CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0);
	return varve_checkpoint(v);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*fn)(void);
	} mistakes[] = { { "freed", freed }, { "no-session", no_session }, { "child", child },
			 { "no-checkpoint", no_checkpoint }, { "no-out", no_out }, { "no-epoch", no_epoch },
			 { "odd-grain", odd_grain }, { "full", full } };

	for (size_t i = 0; argc == 2 && i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		if (strcmp(mistakes[i].name, argv[1]) == 0) {
			if (mistakes[i].fn() < 0)
				puts(varve_last_error());
			varve_close(v);
			return 0;
		}
	}
	return 2;
}
