#include "cli/base/verb_context.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/base/find_lineages.h"
#include "engine/options.h"
#include "engine/context.h"
#include "engine/session/session.h"
#include "engine/tiers/tiers.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* A setting may contain blanks and commas, so it is not passed as a string of pairs. */
static int apply(struct vv_conf *c, const char *setting)
{
	const char *eq = strchr(setting, '=');
	char *name = vv_mem_printf("%.*s", (int)(eq - setting), setting);
	int rc = name ? vv_conf_set(c, name, eq + 1, "command line") : VV_ENOMEM;

	vv_mem_free(name);
	return rc;
}

/* If -o is a verb's own letter, an option of varve after it would be taken for the name of a
 * file. */
static int check_letter(const struct vv_conf *c, const struct vv_args *args)
{
	for (size_t i = 0; args->option && args->option[i].name; i++) {
		const char *value = args->value[i], *eq = value ? strchr(value, '=') : NULL;

		for (size_t k = 0; eq && args->by_letter[i] && args->option[i].letter == 'o' && k < c->n; k++)
			if (strlen(c->item[k].name) == (size_t)(eq - value) && strncmp(c->item[k].name, value, (size_t)(eq - value)) == 0)
				return vv_err_set(VV_EINVAL, "%s: -o %s: here -o is --%s; set options by -c %s, or write ./%s for a file of that name",
						  args->verb, value, args->option[i].name, value, value);
	}
	return 0;
}

int vv_verb_context_init(struct vv_verb_context *job, const struct vv_args *args)
{
	int rc;

	*job = (struct vv_verb_context){ .args = args, .ranks = job->ranks };
	rc = vv_options_load(&job->conf, NULL);
	for (size_t i = 0; rc == 0 && i < args->n_settings; i++)
		rc = apply(&job->conf, args->setting[i]);
	if (rc == 0)
		rc = check_letter(&job->conf, args);
	if (rc)
		return rc;
	vv_options_apply_log(&job->conf);
	vv_json_object(&job->json, NULL);
	return 0;
}

void vv_verb_context_fini(struct vv_verb_context *job)
{
	vv_pool_free(job->pool);
	vv_store_unlock(job->lock);
	vv_store_close(job->store);
	vv_json_fini(&job->json);
	vv_buf_fini(&job->out.buf);
	vv_conf_fini(&job->conf);
}

bool vv_verb_context_is_first(const struct vv_verb_context *job)
{
	return !job->ranks || job->ranks->rank == 0;
}

int vv_verb_context_status(int rc)
{
	return rc >= 0 ? rc : rc == VV_EDAMAGED ? 1 : 2;
}

int vv_verb_context_open_other(struct vv_verb_context *job, const char *url, struct vv_store **out)
{
	struct vv_store_options opt = vv_options_store(&job->conf, false);

	return vv_store_open(url, &opt, out);
}

int vv_verb_context_open_store(struct vv_verb_context *job)
{
	return vv_verb_context_open_other(job, job->args->operand[0], &job->store);
}

int vv_verb_context_open_lineage(struct vv_verb_context *job, const struct vv_spec *spec, struct vv_lineage *out)
{
	int rc = vv_verb_context_open_store(job);

	return rc ? rc : vv_find_lineages_open(job->store, spec->lineage, out);
}

/* The session's epochs are of files and images: none of this process's memory is watched or
 * tested. */
int vv_verb_context_open_session(const struct vv_verb_context *job, const char *url, const char *lineage, struct varve **out)
{
	struct varve_comm plug;
	int rc = job->ranks ? job->ranks->plug(varve_timeout(NULL), &plug) : 0;

	return rc ? rc : vv_session_open(job->ranks ? &plug : NULL, url, lineage, "tracker=digest", out);
}

int vv_verb_context_open_session_once(const struct vv_verb_context *job, const char *url, const char *lineage, struct varve **out)
{
	int rc = vv_verb_context_open_session(job, url, lineage, out);

	if (rc == 0)
		vv_tiers_ignore_last(*out);
	return rc;
}

int vv_verb_context_close_session(struct varve *v, int rc)
{
	struct vv_err_state error;
	int closed;

	vv_err_save(rc, &error);
	closed = varve_close(v);
	return rc < 0 ? vv_err_restore(&error) : closed < 0 ? closed : rc;
}

void vv_verb_context_allow_files(void)
{
	enum { ENOUGH = 40000 };
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= ENOUGH)
		return;
	r.rlim_cur = r.rlim_max < ENOUGH ? r.rlim_max : ENOUGH;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

int vv_verb_context_start_pool(struct vv_verb_context *job)
{
	unsigned threads = (unsigned)vv_conf_number(&job->conf, "threads");

	if (job->pool)
		return 0;
	if (threads == 0) {
		threads = vv_pool_cores();
		threads = threads < 16 ? threads : 16;
	}
	return vv_pool_new(threads - 1, &job->pool);
}

static int hand_on(const char *name, size_t len, const char *value)
{
	char *variable = vv_mem_printf("VARVE_%.*s", (int)len, name);
	int failed;

	for (char *c = variable; c && *c; c++)
		*c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
	failed = variable ? setenv(variable, value, 1) : -1;
	vv_mem_free(variable);
	return failed ? vv_err_set(VV_ENOMEM, "no memory for the options") : 0;
}

int vv_verb_context_hand_on_settings(const struct vv_verb_context *job)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < job->args->n_settings; i++) {
		const char *setting = job->args->setting[i], *eq = strchr(setting, '=');

		rc = hand_on(setting, (size_t)(eq - setting), eq + 1);
	}
	return rc;
}

int vv_verb_context_set_option(struct vv_verb_context *job, const char *name, const char *value)
{
	int rc = vv_conf_set(&job->conf, name, value, "command line");

	return rc ? rc : hand_on(name, strlen(name), value);
}

int vv_verb_context_take_option(struct vv_verb_context *job, const char *typed, const char *name)
{
	const char *value = vv_args_value(job->args, typed);
	int rc = vv_args_set(job->args, typed, &job->conf, name);

	return rc || !value ? rc : hand_on(name, strlen(name), value);
}

int vv_verb_context_lock(struct vv_verb_context *job, const struct vv_lineage *lin)
{
	char object[VV_NAME_MAX];

	vv_name_lock(object, lin->name);
	return vv_store_lock(lin->store, object, &job->lock);
}

void vv_verb_context_unlock(struct vv_verb_context *job)
{
	vv_store_unlock(job->lock);
	job->lock = NULL;
}

static void note_read(struct vv_verb_context *job, const struct vv_lineage *lin, uint64_t epoch, bool named)
{
	struct vv_verb_context_read *r = &job->read[job->n_reads];

	if (job->n_reads == VV_VERB_CONTEXT_READS || strlen(lin->store->url) >= sizeof(r->store))
		return;
	snprintf(r->store, sizeof(r->store), "%s", lin->store->url);
	snprintf(r->lineage, sizeof(r->lineage), "%s", lin->name);
	r->epoch = epoch;
	r->named = named;
	job->n_reads++;
}

int vv_verb_context_epoch(struct vv_verb_context *job, const struct vv_lineage *lin, struct vv_spec *spec, uint64_t *epoch)
{
	bool named = vv_spec_has_epoch(spec) && !vv_spec_is_relative(spec);
	int rc = vv_spec_look_up(spec, lin);

	*epoch = spec->first;
	if (rc == 0 && !*epoch)
		rc = vv_catalog_newest(lin, UINT64_MAX, epoch);
	if (rc == 0 && !*epoch)
		rc = vv_err_set(VV_ENOENT, "lineage '%s' of store '%s' has no epoch", lin->name, lin->store->url);
	if (rc == 0)
		note_read(job, lin, *epoch, named);
	return rc;
}

int vv_verb_context_list_again(struct vv_verb_context *job, const struct vv_lineage *lin)
{
	uint64_t newest = 0;
	int rc = vv_catalog_newest(lin, UINT64_MAX, &newest);

	if (rc || !newest)
		return rc;
	job->again = !job->begun && !job->out.begun && !job->ranks;
	return vv_err_set(VV_ENOENT, "lineage '%s' of store '%s': its writer drops epochs faster than they can be listed", lin->name, lin->store->url);
}

/* The verb may have closed its store. */
static bool is_gone(struct vv_verb_context *job, const struct vv_verb_context_read *r)
{
	struct vv_store *store = NULL;
	struct vv_lineage lin;
	bool gone = vv_verb_context_open_other(job, r->store, &store) == 0 && vv_catalog_open(store, r->lineage, false, &lin) == 0 &&
		    vv_catalog_is_dropped(&lin, r->epoch);

	vv_store_close(store);
	return gone;
}

int vv_verb_context_explain(struct vv_verb_context *job, int rc)
{
	struct vv_err_state error;

	if (rc != VV_EDAMAGED && rc != VV_ENOENT && rc != VV_EIO)
		return rc;
	vv_err_save(rc, &error);
	for (size_t i = 0; i < job->n_reads; i++) {
		const struct vv_verb_context_read *r = &job->read[i];

		if (!is_gone(job, r))
			continue;
		if (r->named && rc == VV_ENOENT)
			break; /* it did not exist */
		job->again = !r->named && !job->begun && !job->out.begun && !job->ranks;
		if (job->again && job->replaceable)
			vv_log_warn("epoch %" PRIu64 " of lineage '%s' was dropped by its writer while it was read: a newer one replaces its files, but those that only the dropped one has stay",
				    r->epoch, r->lineage);
		return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' was dropped by its writer while it was read", r->epoch, r->lineage);
	}
	if (rc == VV_EDAMAGED && job->n_reads && !strstr(error.message, "varve verify"))
		return vv_err_set(rc, "%s ('varve verify %s %s' names the affected epochs)", error.message, job->read[0].store, job->read[0].lineage);
	return vv_err_restore(&error);
}
