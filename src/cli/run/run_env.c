#include "cli/run/run_env.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/run_protocol.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

static const char name[] = "libvarve_preload.so";

static int set(const char *variable, const char *value)
{
	return setenv(variable, value, 1) == 0 ? 0 : vv_err_set(VV_ENOMEM, "no memory for the environment");
}

/* ---- the surroundings ------------------------------------------------------------------------ */

int vv_run_env_self(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
	return n > 0 ? 0 : vv_err_sys(errno, "run: cannot tell where this command is");
}

int vv_run_env_library(char path[PATH_MAX])
{
	static const char *const folders[] = { "", "../" VV_LIBDIR "/", "../lib/" };
	const char *own = getenv("VARVE_PRELOAD");
	char exe[PATH_MAX];
	int rc;

	if (own && own[0])
		return realpath(own, path) ? 0 : vv_err_sys(errno, "run: VARVE_PRELOAD is '%s'", own);
	rc = vv_run_env_self(exe);
	if (rc)
		return rc;
	strrchr(exe, '/')[1] = '\0'; /* it is an absolute path */
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char *at = vv_mem_printf("%s%s%s", exe, folders[i], name);
		bool found = at && realpath(at, path);

		vv_mem_free(at);
		if (found)
			return 0;
	}
	return vv_err_set(VV_ENOTSUP, "run: %s, which captures a program's memory, is neither beside the command (in '%s') nor in ../lib from there: "
			  "build varve with jemalloc and install it, or say where it is by VARVE_PRELOAD", name, exe);
}

/* The program may change its folder, and ranks start in other folders: no relative paths. */
int vv_run_env_store(const char *url, char out[PATH_MAX])
{
	const char *path = url ? url : "varve-store";
	char here[PATH_MAX];
	int n;

	if (strncmp(path, "mem:", 4) == 0)
		return vv_err_set(VV_EINVAL, "run: store '%s' ends with the program, and so would its checkpoints", path);
	if (strncmp(path, "dir:", 4) == 0)
		path += 4;
	if (!path[0])
		return vv_err_set(VV_EINVAL, "run: --store '%s' names no folder; leave it out for 'varve-store', or say which", url);
	if (path[0] == '/' || strstr(path, "://") || strncmp(path, "ram:", 4) == 0) {
		n = snprintf(out, PATH_MAX, "%s", path);
	} else {
		if (!getcwd(here, sizeof(here)))
			return vv_err_sys(errno, "run: cannot tell the current folder");
		n = snprintf(out, PATH_MAX, "%s/%s", here, path);
	}
	return n < PATH_MAX ? 0 : vv_err_set(VV_EINVAL, "run: the path of store '%.100s...' is too long", path);
}

void vv_run_env_lineage(const char *command, char out[VV_NAME_LINEAGE_MAX + 1])
{
	const char *slash = strrchr(command, '/'), *from = slash && slash[1] ? slash + 1 : command;
	size_t n = 0;

	for (; from[n] && n < VV_NAME_LINEAGE_MAX; n++) {
		bool fine = isascii((unsigned char)from[n]) && (isalnum((unsigned char)from[n]) || strchr("_-", from[n]) || (n && from[n] == '.'));

		out[n] = fine ? from[n] : '-';
	}
	out[n] = '\0';
}

/* ---- the environment of the program ---------------------------------------------------------- */

int vv_run_env_restart(uint64_t epoch)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, epoch);
	return set(VV_RUN_PROTOCOL_RESTART, epoch == UINT64_MAX ? "latest" : epoch ? number : "none");
}

int vv_run_env_rehearse(const char *store, uint64_t look, uint64_t last)
{
	char numbers[48];
	int rc = set(VV_RUN_PROTOCOL_STORE, store);

	snprintf(numbers, sizeof(numbers), "%" PRIu64 "-%" PRIu64, look, last);
	return rc ? rc : set(VV_RUN_PROTOCOL_REHEARSE, numbers);
}

int vv_run_env_terms(const struct vv_run_plan *plan, const char *events)
{
	int rc = set(VV_RUN_PROTOCOL_STORE, plan->store);

	if (rc == 0)
		rc = set(VV_RUN_PROTOCOL_LINEAGE, plan->lineage);
	if (rc == 0)
		rc = vv_run_env_restart(plan->first);
	if (rc == 0 && plan->globals)
		rc = set(VV_RUN_PROTOCOL_GLOBALS, "1");
	if (rc == 0 && plan->free_unreachable)
		rc = set(VV_RUN_PROTOCOL_FREE_UNREACHABLE, "1");
	if (rc == 0 && plan->mpi_as_asked)
		rc = set(VV_RUN_PROTOCOL_MPI, "asked");
	if (rc == 0 && events)
		rc = set(VV_RUN_PROTOCOL_EVENTS, events);
	if (!events)
		unsetenv(VV_RUN_PROTOCOL_EVENTS);
	return rc ? rc : set("VARVE_PRELOAD", plan->preload);
}

/* Is randomization off for all processes? */
static bool is_fixed_anyway(void)
{
	int fd = open("/proc/sys/kernel/randomize_va_space", O_RDONLY | O_CLOEXEC);
	char c = '2';
	bool fixed = fd >= 0 && read(fd, &c, 1) == 1 && c == '0';

	if (fd >= 0)
		close(fd);
	return fixed;
}

/* Programs executed from now on inherit the setting; the addresses of this process do not
 * change. */
static int fix_addresses(void)
{
	int now = personality(0xffffffff);

	if ((now >= 0 && now & ADDR_NO_RANDOMIZE) || personality((unsigned long)(now < 0 ? 0 : now) | ADDR_NO_RANDOMIZE) >= 0 || is_fixed_anyway())
		return 0;
	return vv_err_sys(errno, "run: memory must lie at the same addresses every time, but address space randomisation may not be switched off here "
			  "(personality): allow it in the container (docker run --security-opt seccomp=unconfined), or switch it off for all (sysctl "
			  "kernel.randomize_va_space=0)");
}

/* Makes MPI_Init behave as if the program had asked for MPI_THREAD_MULTIPLE, so that an epoch is
 * committed while the program computes. Open MPI reads the first name, MPICH the second. A value
 * that the user has set stays. */
static int raise_thread_level(void)
{
	const char *level = getenv(VV_RUN_PROTOCOL_MPI);

	if (level && strcmp(level, "asked") == 0)
		return 0;
	if (setenv("OMPI_MPI_THREAD_LEVEL", "3", 0) < 0 || setenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL", "MPI_THREAD_MULTIPLE", 0) < 0)
		return vv_err_set(VV_ENOMEM, "no memory for the environment");
	return 0;
}

int vv_run_env_enter(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *all;
	int rc = fix_addresses();

	if (rc == 0)
		rc = raise_thread_level();
	if (rc)
		return rc;
	if (strpbrk(library, " :"))
		return vv_err_set(VV_EINVAL, "run: the loader takes no blank and no colon in the path of a library: '%s'", library);
	if (others && strncmp(others, library, strlen(library)) == 0 && strchr(" :", others[strlen(library)]))
		return 0; /* strchr finds the end of the string, too */
	all = vv_mem_printf("%s%s%s", library, others && others[0] ? ":" : "", others ? others : "");
	rc = all ? set("LD_PRELOAD", all) : VV_ENOMEM;
	vv_mem_free(all);
	return rc;
}
