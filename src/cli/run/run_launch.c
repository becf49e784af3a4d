#include "cli/run/run_launch.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/run/run_env.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Takes ownership of the word; NULL means that there was no memory for it. */
static int add(struct vv_run_launch *l, char *word)
{
	int rc = word ? vv_mem_room(&l->word, l->n + 1, &l->cap, sizeof(*l->word)) : VV_ENOMEM;

	if (rc) {
		vv_mem_free(word);
		return rc;
	}
	l->word[l->n++] = word;
	l->word[l->n] = NULL;
	return 0;
}

/* NULL: none is named. */
static const char *own_launcher(void)
{
	const char *own = getenv("VARVE_MPIRUN");

	return own && own[strspn(own, " ")] ? own : NULL;
}

bool vv_run_launch_is_elsewhere(const struct vv_run_plan *plan)
{
	return plan->ranks && own_launcher();
}

static int add_launcher(struct vv_run_launch *l)
{
	const char *own = own_launcher(), *at = own ? own : getenv("SLURM_JOB_ID") ? "srun" : "mpirun";
	int rc = 0;

	for (at += strspn(at, " "); rc == 0 && *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		rc = add(l, vv_mem_printf("%.*s", (int)n, at));
		at += n;
	}
	return rc;
}

static int add_environment(struct vv_run_launch *l)
{
	int rc = add(l, vv_mem_strdup("env"));

	for (char **e = environ; rc == 0 && *e; e++)
		if (strncmp(*e, "VARVE_", 6) == 0)
			rc = add(l, vv_mem_strdup(*e));
	return rc;
}

int vv_run_launch_init(struct vv_run_launch *l, const struct vv_run_plan *plan)
{
	static const char *const inner[] = { "run", "--as-rank", "--" };
	char exe[PATH_MAX];
	int rc = vv_run_env_self(exe);

	*l = (struct vv_run_launch){ 0 };
	if (rc == 0)
		rc = add_launcher(l);
	if (rc == 0)
		rc = add(l, vv_mem_strdup("-n"));
	if (rc == 0)
		rc = add(l, vv_mem_printf("%" PRIu64, plan->ranks));
	if (rc == 0)
		rc = add_environment(l);
	if (rc == 0)
		rc = add(l, vv_mem_strdup(exe));
	for (size_t i = 0; rc == 0 && i < sizeof(inner) / sizeof(inner[0]); i++)
		rc = add(l, vv_mem_strdup(inner[i]));
	for (char *const *w = plan->command; rc == 0 && *w; w++)
		rc = add(l, vv_mem_strdup(*w));
	if (rc)
		vv_run_launch_fini(l);
	return rc;
}

void vv_run_launch_fini(struct vv_run_launch *l)
{
	for (size_t i = 0; i < l->n; i++)
		vv_mem_free(l->word[i]);
	vv_mem_free(l->word);
	*l = (struct vv_run_launch){ 0 };
}
