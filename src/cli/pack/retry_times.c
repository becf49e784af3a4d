#include "cli/pack/retry_times.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

static const double WAIT_FIRST = 10, WAIT_MOST = 3600; /* seconds */

void vv_retry_times_fini(struct vv_retry_times *r)
{
	for (size_t i = 0; i < r->n; i++)
		vv_mem_free(r->v[i].name);
	vv_mem_free(r->v);
	vv_map_fini(&r->by_name);
	*r = (struct vv_retry_times){ 0 };
}

static struct vv_retry_time *find(const struct vv_retry_times *r, const char *name)
{
	size_t at = vv_map_get(&r->by_name, name);

	return at == VV_MAP_NONE ? NULL : &r->v[at];
}

static int find_or_add(struct vv_retry_times *r, const char *name, struct vv_retry_time **out)
{
	char *copy;
	int rc;

	*out = find(r, name);
	if (*out)
		return 0;
	copy = vv_mem_strdup(name);
	rc = copy ? vv_mem_room(&r->v, r->n, &r->cap, sizeof(*r->v)) : VV_ENOMEM;
	if (rc == 0)
		rc = vv_map_put(&r->by_name, copy, r->n);
	if (rc) {
		vv_mem_free(copy);
		return rc;
	}
	*out = &r->v[r->n++];
	**out = (struct vv_retry_time){ .name = copy, .wait = WAIT_FIRST };
	return 0;
}

double vv_retry_times_get(const struct vv_retry_times *r, const char *name)
{
	const struct vv_retry_time *t = find(r, name);

	return t ? t->at : 0;
}

int vv_retry_times_wait(struct vv_retry_times *r, const char *name, double seconds)
{
	struct vv_retry_time *t;
	int rc = find_or_add(r, name, &t);

	if (rc == 0)
		t->at = vv_clock_s() + seconds;
	return rc;
}

int vv_retry_times_failed(struct vv_retry_times *r, const char *name)
{
	struct vv_retry_time *t;
	int rc = find_or_add(r, name, &t);

	if (rc)
		return rc;
	t->at = vv_clock_s() + t->wait;
	t->wait = t->wait * 2 < WAIT_MOST ? t->wait * 2 : WAIT_MOST;
	return 0;
}

void vv_retry_times_succeeded(struct vv_retry_times *r, const char *name)
{
	struct vv_retry_time *t = find(r, name);

	if (!t)
		return;
	t->at = 0;
	t->wait = WAIT_FIRST;
}
