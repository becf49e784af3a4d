#include "cli/main/default_store.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>
#include <sys/stat.h>

/* The number of the operand STORE; -1: the verb has none. */
static int place_of(const struct vv_args *args, const struct vv_cmd *cmd)
{
	if (strncmp(cmd->operands, "STORE", 5) == 0)
		return 0;
	if (cmd != &vv_cmd_image || args->n_operands == 0)
		return -1;
	return strcmp(args->operand[0], "check") == 0 ? -1 : 1;
}

/* Has the operand the form of a lineage's name, perhaps with an epoch or a region? A path with '/'
 * has not, nor has a URL. */
static bool is_name(const char *text)
{
	static const char *const schemes[] = { "dir:", "mem:", "ram:", "s3:" };
	size_t n = strcspn(text, "@:");
	char *lineage;
	bool fine;

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
			return false;
	lineage = vv_mem_printf("%.*s", (int)n, text);
	fine = lineage && vv_name_check_lineage(lineage) == 0;
	vv_mem_free(lineage);
	return fine && !memchr(text, '/', strcspn(text, ":"));
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int read_option(const struct vv_args *args, char **store, char **origin)
{
	struct vv_verb_context probe = { 0 };
	int rc = vv_verb_context_init(&probe, args);

	if (rc == 0) {
		*store = vv_mem_strdup(vv_conf_text(&probe.conf, "store"));
		*origin = vv_mem_strdup(vv_conf_origin(&probe.conf, "store"));
		rc = *store && *origin ? 0 : VV_ENOMEM;
	}
	vv_verb_context_fini(&probe);
	return rc;
}

static void insert(struct vv_args *args, size_t at, char *store)
{
	memmove(args->operand + at + 1, args->operand + at, (args->n_operands - at) * sizeof(*args->operand));
	args->operand[at] = args->own_operand = store;
	args->n_operands++;
}

/* A name without the option: it cannot be a store, unless there is a folder of that name. */
static int check_unset(const struct vv_args *args, const char *first)
{
	if (!first || !strchr(first, '@') || is_folder(first))
		return 0;
	return vv_err_set(VV_EINVAL, "%s: '%s' names an epoch, and no STORE is given: name it first, or set VARVE_STORE", args->verb, first);
}

int vv_default_store_add(struct vv_args *args, const struct vv_cmd *cmd)
{
	int at = place_of(args, cmd), rc;
	size_t n = args->n_operands, min = cmd == &vv_cmd_image ? 3 : cmd->min, max = cmd->max;
	const char *first = at >= 0 && n > (size_t)at ? args->operand[at] : NULL;
	char *store = NULL, *origin = NULL;

	if (at < 0 || n + 1 < min || n >= max || (n >= min && !is_name(first)))
		return 0;
	rc = read_option(args, &store, &origin);
	if (rc == 0 && !store[0])
		rc = n < min ? 0 : check_unset(args, first);
	else if (rc == 0 && n >= min && is_folder(first))
		rc = vv_err_set(VV_EINVAL, "%s: '%s' may be the store ./%s here, or a name in the store '%s' (option store, from %s): write ./%s, or both operands",
				args->verb, first, first, store, origin, first);
	else if (rc == 0) {
		insert(args, (size_t)at, store);
		store = NULL;
	}
	vv_mem_free(store);
	vv_mem_free(origin);
	return rc;
}
