#include "engine/tier_list.h"
#include "base/err.h"
#include "base/mem.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char blanks[] = " \t\n";

static const struct vv_conf_item settings[] = {
	{ "every", VV_CONF_COUNT, "1", NULL, 1, UINT32_MAX, NULL },
	{ "mtbf", VV_CONF_DURATION, "0", NULL, 0, 0, NULL },
	{ "keep", VV_CONF_COUNT, "0", NULL, 0, UINT32_MAX, NULL },
	{ "bandwidth", VV_CONF_SIZE, "0", NULL, 0, 0, NULL },
	{ "last", VV_CONF_BOOL, "yes", NULL, 0, 0, NULL },
};

static bool is_setting(const char *word)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (strcmp(word, settings[i].name) == 0)
			return true;
	return false;
}

/* Programs may change their folder. */
char *vv_tier_list_absolute(const char *url)
{
	const char *path = strncmp(url, "dir:", 4) == 0 ? url + 4 : url;
	size_t scheme = strcspn(path, ":/");
	char *here, *whole;

	if (path[0] == '/' || path[scheme] == ':' || !path[0])
		return vv_mem_strdup(path[0] == '/' ? path : url);
	here = getcwd(NULL, 0);
	if (!here)
		vv_err_sys(errno, "the current folder, in which store '%s' lies, is unknown", url);
	whole = here ? vv_mem_printf("%s/%s", here, path) : NULL;
	free(here);
	return whole;
}

/* "every=10 keep=5" */
static int read_settings(char *text, const char *url, const char *origin, struct vv_tier_setting *out)
{
	char *where = vv_mem_printf("%s: tiers: '%.80s'", origin, url), *rest = NULL;
	struct vv_conf c = { 0 };
	int rc = where ? vv_conf_init(&c, settings, sizeof(settings) / sizeof(settings[0])) : VV_ENOMEM;

	for (char *word = strtok_r(text, blanks, &rest); rc == 0 && word; word = strtok_r(NULL, blanks, &rest)) {
		char *eq = strchr(word, '=');

		if (eq)
			*eq = '\0';
		if (!eq || strspn(word, "abcdefghijklmnopqrstuvwxyz") != strlen(word))
			rc = vv_err_set(VV_EINVAL, "%s: '%.60s' is not of the form name=value (every, mtbf, keep, bandwidth, last); a ';' is between two tiers, and no blank in a store", where, word);
		else if (!is_setting(word))
			rc = vv_err_set(VV_EINVAL, "%s: unknown setting '%.60s' (every, mtbf, keep, bandwidth, last)", where, word);
		else
			rc = vv_conf_set(&c, word, eq + 1, where);
	}
	if (rc == 0) {
		*out = (struct vv_tier_setting){ .url = out->url, .every = vv_conf_number(&c, "every"), .mtbf = vv_conf_real(&c, "mtbf"),
						 .keep = vv_conf_number(&c, "keep"), .bandwidth = vv_conf_number(&c, "bandwidth"),
						 .last = vv_conf_bool(&c, "last") };
		if (out->mtbf > 0 && strcmp(vv_conf_origin(&c, "every"), "default") != 0)
			rc = vv_err_set(VV_EINVAL, "%s: every and mtbf: one of them", where);
	}
	vv_conf_fini(&c);
	vv_mem_free(where);
	return rc;
}

static int check_other(const struct vv_tier_list *l, const char *nearest, const char *url, const char *origin)
{
	bool same = strcmp(url, nearest) == 0;

	for (size_t i = 0; i < l->n; i++)
		same |= strcmp(url, l->v[i].url) == 0;
	return same ? vv_err_set(VV_EINVAL, "%s: tiers: store '%s' is named twice, or is the store of the session itself", origin, url) : 0;
}

static int add(struct vv_tier_list *l, char *text, const char *nearest, const char *origin)
{
	char *rest = NULL, *url = strtok_r(text, blanks, &rest);
	struct vv_tier_setting t = { 0 };
	int rc = 0;

	if (!url)
		return 0;
	if (l->n == VV_TIER_LIST_MAX)
		return vv_err_set(VV_EINVAL, "%s: tiers: more than %d stores", origin, VV_TIER_LIST_MAX);
	t.url = vv_tier_list_absolute(url);
	if (!t.url)
		return VV_ENOMEM;
	rc = check_other(l, nearest, t.url, origin);
	if (rc == 0)
		rc = read_settings(rest ? rest : url + strlen(url), url, origin, &t);
	if (rc)
		vv_mem_free(t.url);
	else
		l->v[l->n++] = t;
	return rc;
}

int vv_tier_list_read(const struct vv_conf *conf, const char *nearest, struct vv_tier_list *out)
{
	const char *origin = vv_conf_origin(conf, "tiers");
	char *copy, *own, *next, *text;
	int rc = 0;

	*out = (struct vv_tier_list){ 0 };
	if (!vv_conf_text(conf, "tiers")[0])
		return 0;
	copy = vv_mem_strdup(vv_conf_text(conf, "tiers"));
	own = vv_tier_list_absolute(nearest);
	if (!copy || !own)
		rc = VV_ENOMEM;
	for (text = copy; rc == 0 && text; text = next) {
		next = strchr(text, ';');
		if (next)
			*next++ = '\0';
		rc = add(out, text, own, origin);
	}
	vv_mem_free(copy);
	vv_mem_free(own);
	return rc;
}

void vv_tier_list_fini(struct vv_tier_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		vv_mem_free(l->v[i].url);
	l->n = 0;
}
