#include "cli/base/find_lineages.h"
#include "base/err.h"
#include "cli/base/text.h"
#include "core/format/name.h"
#include "engine/lineage/catalog.h"
#include <string.h>

/* A folder of epochs is at the top of the supposed store: the user has named a lineage. */
static bool is_lineage(const struct vv_names *entries)
{
	for (size_t i = 0; i < entries->n; i++)
		if (entries->v[i].is_dir && vv_name_parse_folder(entries->v[i].name) >= 0)
			return true;
	return false;
}

static int explain_lineage(const char *url)
{
	int end = (int)strlen(url), name;

	while (end > 1 && url[end - 1] == '/')
		end--;
	for (name = end; name > 0 && url[name - 1] != '/';)
		name--;
	return vv_err_set(VV_ENOENT, "'%s' is a lineage, not a store; its store is '%.*s', and its name there is '%.*s'", url,
			  name > 1 ? name - 1 : 1, name ? url : ".", end - name, url + name);
}

static int explain(const char *url, const struct vv_names *entries)
{
	if (entries->n == 0 && strncmp(url, "s3:", 3) == 0)
		return vv_err_set(VV_ENOENT, "'%s' is empty: no checkpoint was stored there", url);
	if (entries->n == 0)
		return vv_err_set(VV_ENOENT, "'%s' is empty: no checkpoint was stored there, or its file system is not mounted", url);
	if (is_lineage(entries))
		return explain_lineage(url);
	return vv_err_set(VV_ENOENT, "'%s' is no store of checkpoints: none of its %zu entries is a lineage; one is '%s'", url, entries->n,
			  vv_text_safe(entries->v[0].name).s);
}

int vv_find_lineages(struct vv_store *store, struct vv_names *out)
{
	struct vv_names entries = { 0 };
	int rc = vv_catalog_lineages(store, out);

	if (rc || out->n)
		return rc;
	vv_names_fini(out);
	rc = vv_store_list(store, "", &entries);
	rc = rc ? rc : explain(store->url, &entries);
	vv_names_fini(&entries);
	return rc;
}

int vv_find_lineages_open(struct vv_store *store, const char *name, struct vv_lineage *out)
{
	struct vv_names names = { 0 };
	struct vv_err_state error;
	int rc = vv_catalog_open(store, name, false, out);

	if (rc != VV_ENOENT)
		return rc;
	vv_err_save(rc, &error);
	rc = vv_find_lineages(store, &names);
	vv_names_fini(&names);
	return rc == VV_ENOENT ? rc : vv_err_restore(&error);
}
