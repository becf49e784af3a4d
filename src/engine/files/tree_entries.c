#include "engine/files/tree_entries.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

static bool is_asked(const struct vv_unpack_options *opt, const char *name)
{
	bool asked = opt->n_only == 0;

	for (size_t i = 0; !asked && i < opt->n_only; i++)
		asked = strcmp(name, opt->only[i]) == 0 || vv_manifest_is_below(name, opt->only[i]);
	return asked;
}

static int by_name(const void *a, const void *b)
{
	return vv_manifest_compare((*(const struct vv_manifest_entry *const *)a)->name,
				   (*(const struct vv_manifest_entry *const *)b)->name);
}

int vv_tree_entries_choose(const struct vv_unpack *u, const struct vv_unpack_options *opt, struct vv_tree_entries *e)
{
	size_t n = 0;

	*e = (struct vv_tree_entries){.opt = opt, .target.fd = -1};
	for (size_t r = 0; r < u->n_ranks; r++)
		n += u->rank[r].manifest.n_entries;
	if (n == 0)
		return 0;
	e->v = vv_mem_new(n, sizeof(*e->v));
	e->made = vv_mem_new(n, sizeof(*e->made));
	if (!e->v || !e->made) {
		vv_tree_entries_fini(e);
		return VV_ENOMEM;
	}
	for (size_t r = 0; r < u->n_ranks; r++)
		for (size_t i = 0; i < u->rank[r].manifest.n_entries; i++)
			if (is_asked(opt, u->rank[r].manifest.entry[i].name))
				e->v[e->n++] = &u->rank[r].manifest.entry[i];
	if (e->n)
		qsort(e->v, e->n, sizeof(*e->v), by_name);
	return 0;
}

int vv_tree_entries_begin(struct vv_tree_entries *e)
{
	int rc = e->n ? vv_output_dir_open(&e->target, e->opt->folder, true) : 0;

	for (size_t i = 0; rc == 0 && i < e->n; i++)
		if (e->v[i]->type == VV_MANIFEST_FOLDER)
			rc = vv_output_dir_make(&e->target, e->v[i]->name, &e->made[i]);
	return rc;
}

static int end_one(struct vv_tree_entries *e, size_t i, struct vv_unpack_report *out)
{
	const struct vv_manifest_entry *x = e->v[i];
	struct timespec mtime = {.tv_sec = (time_t)x->mtime_s, .tv_nsec = (long)x->mtime_ns};

	if (x->type == VV_MANIFEST_LINK)
		return vv_output_dir_symlink(&e->target, x->name, x->target, mtime, e->opt->force);
	return e->made[i] ? vv_output_dir_finish(&e->target, x->name, &x->attrs, &out->left, x->mode, mtime) : 0;
}

static void end_all(struct vv_tree_entries *e, uint8_t type, struct vv_unpack_report *out, struct vv_err_state *error)
{
	for (size_t i = e->n; i-- > 0;) {
		int rc = e->v[i]->type == type ? end_one(e, i, out) : 0;

		out->entries += rc == 0 && e->v[i]->type == type;
		if (rc && !error->code)
			vv_err_save(rc, error);
		if (rc)
			vv_unpack_miss(out, e->v[i]->name);
	}
}

/* Links come first: a folder may be read-only, and its time is that of its last change. Folders
 * follow in reverse order, because a folder may make those below it inaccessible. */
int vv_tree_entries_end(struct vv_tree_entries *e, struct vv_unpack_report *out)
{
	struct vv_err_state error = {0};
	int rc = 0;

	end_all(e, VV_MANIFEST_LINK, out, &error);
	if (e->n)
		rc = vv_output_dir_sync(&e->target);
	end_all(e, VV_MANIFEST_FOLDER, out, &error);
	return error.code ? vv_err_restore(&error) : rc;
}

void vv_tree_entries_fini(struct vv_tree_entries *e)
{
	vv_output_dir_close(&e->target);
	vv_mem_free(e->v);
	vv_mem_free(e->made);
	*e = (struct vv_tree_entries){.target.fd = -1};
}
