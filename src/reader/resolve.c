/* Resolves paths through links, like a file system. */
#include "reader/resolve.h"
#include "base/err.h"
#include <stdio.h>
#include <string.h>

enum { STEPS = 256 };

/* Removes empty steps and dots. */
static void tidy(char *path)
{
	char *to = path;

	for (const char *p = path; *p;) {
		size_t n;

		p += strspn(p, "/");
		n = strcspn(p, "/");
		if (n && !(n == 1 && *p == '.')) {
			*to++ = '/';
			memmove(to, p, n);
			to += n;
		}
		p += n;
	}
	*to = '\0';
}

static const struct vv_reader_link *link_on(const struct vv_outline *o, const char *path)
{
	for (size_t i = 0; i < o->n_links; i++) {
		size_t n = strlen(o->link[i].name);

		if (n > 1 && strncmp(path, o->link[i].name, n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return &o->link[i];
	}
	return NULL;
}

int vv_resolve_path(const struct vv_outline *o, const char *name, char out[VV_RESOLVE_PATH])
{
	char path[2 * VV_RESOLVE_PATH + 2];
	const struct vv_reader_link *k;
	int n = snprintf(out, VV_RESOLVE_PATH - 1, "/%s", name);

	for (unsigned i = 0; i < STEPS && n >= 0 && n < VV_RESOLVE_PATH - 1; i++) {
		tidy(out);
		k = link_on(o, out);
		if (!k)
			return 0;
		if (k->outside)
			return vv_err_set(VV_ENOENT, "'%s' is a link into another file, '%s'", k->name, k->target);
		n = snprintf(path, sizeof(path), "%s/%s", k->target, out + strlen(k->name));
		if (n < VV_RESOLVE_PATH - 1)
			memcpy(out, path, (size_t)n + 1);
	}
	return vv_err_set(VV_ENOENT, "the links of '%s' lead round in a circle, or too far", name);
}
