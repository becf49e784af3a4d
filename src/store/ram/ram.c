/* Objects as reference-counted buffers: a reader of a replaced object keeps the old one. */
#include "store/ram/ram.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/held.h"
#include "base/mem.h"
#include "store/backend/names.h"
#include <string.h>

struct ram_object {
	char *name;
	struct vv_buf data;
	unsigned refs; /* one for the store, one per reader */
};

struct ram_place {
	char *name;
	unsigned users;
	struct ram_object **object;
	size_t n, cap;
	char *locked[16];
	struct ram_place *next;
};

struct ram_store {
	struct vv_store base;
	struct ram_place *place;
};

struct ram_put {
	struct vv_put base;
	struct vv_buf data;
};

struct ram_get {
	struct vv_get base;
	struct ram_object *object;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ram_place *places;

static struct ram_place *place_of(struct vv_store *s)
{
	return ((struct ram_store *)s)->place;
}

static void object_unref(struct ram_object *o)
{
	if (o && --o->refs == 0) {
		vv_mem_free(o->name);
		vv_buf_fini(&o->data);
		vv_mem_free(o);
	}
}

static struct ram_object **find(struct ram_place *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->object[i]->name, name) == 0)
			return &p->object[i];
	return NULL;
}

static void put_free(struct ram_put *p)
{
	vv_buf_fini(&p->data);
	vv_mem_free(p->base.name);
	vv_mem_free(p);
}

static int put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out)
{
	struct ram_put *p = vv_mem_new(1, sizeof(*p));

	(void)size_hint;
	if (!p)
		return VV_ENOMEM;
	p->base.store = s;
	p->base.name = vv_mem_strdup(name);
	if (!p->base.name) {
		put_free(p);
		return VV_ENOMEM;
	}
	*out = &p->base;
	return 0;
}

static int put_write(struct vv_put *base, const struct iovec *iov, int n)
{
	struct ram_put *p = (struct ram_put *)base;

	for (int i = 0; i < n; i++)
		vv_buf_add(&p->data, iov[i].iov_base, iov[i].iov_len);
	return vv_buf_check(&p->data);
}

static int insert(struct ram_place *p, struct ram_object *o)
{
	struct ram_object **slot = find(p, o->name);

	if (slot) {
		object_unref(*slot);
		*slot = o;
		return 0;
	}
	if (vv_mem_room(&p->object, p->n, &p->cap, sizeof(struct ram_object *)) < 0)
		return VV_ENOMEM;
	p->object[p->n++] = o;
	return 0;
}

static int put_commit(struct vv_put *base)
{
	struct ram_put *p = (struct ram_put *)base;
	struct ram_object *o = vv_mem_new(1, sizeof(*o));
	int rc = VV_ENOMEM;

	if (o) {
		*o = (struct ram_object){ base->name, p->data, 1 };
		pthread_mutex_lock(&lock);
		rc = insert(place_of(base->store), o);
		pthread_mutex_unlock(&lock);
	}
	if (rc) {
		vv_mem_free(o);
		put_free(p);
		return rc;
	}
	vv_mem_free(p);
	return 0;
}

static void put_abort(struct vv_put *base)
{
	put_free((struct ram_put *)base);
}

static int get_open(struct vv_store *s, const char *name, struct vv_get **out)
{
	struct ram_get *g = vv_mem_new(1, sizeof(*g));
	struct ram_object **o;

	if (!g)
		return VV_ENOMEM;
	g->base.store = s;
	g->base.name = vv_mem_strdup(name);
	if (!g->base.name) {
		vv_mem_free(g);
		return VV_ENOMEM;
	}
	pthread_mutex_lock(&lock);
	o = find(place_of(s), name);
	if (o) {
		g->object = *o;
		g->object->refs++;
	}
	pthread_mutex_unlock(&lock);
	if (!o) {
		vv_mem_free(g->base.name);
		vv_mem_free(g);
		return vv_err_set(VV_ENOENT, "'%s/%s' does not exist", s->url, name);
	}
	g->base.size = g->object->data.n;
	*out = &g->base;
	return 0;
}

static int get_read(struct vv_get *base, uint64_t off, void *to, size_t n)
{
	memcpy(to, ((struct ram_get *)base)->object->data.p + off, n);
	return 0;
}

static void get_close(struct vv_get *base)
{
	pthread_mutex_lock(&lock);
	object_unref(((struct ram_get *)base)->object);
	pthread_mutex_unlock(&lock);
	vv_mem_free(base->name);
	vv_mem_free(base);
}

static int listed(const struct vv_names *v, const char *name, size_t len)
{
	for (size_t i = 0; i < v->n; i++)
		if (strlen(v->v[i].name) == len && memcmp(v->v[i].name, name, len) == 0)
			return 1;
	return 0;
}

static int list(struct vv_store *s, const char *dir, struct vv_names *out)
{
	struct ram_place *p = place_of(s);
	size_t skip = dir[0] ? strlen(dir) + 1 : 0;
	int rc = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; rc == 0 && i < p->n; i++) {
		const char *name = p->object[i]->name;
		size_t len;

		if (skip && (strncmp(name, dir, skip - 1) != 0 || name[skip - 1] != '/'))
			continue;
		name += skip;
		len = strcspn(name, "/");
		if (name[len] != '/')
			rc = vv_names_add(out, name, len, p->object[i]->data.n, false);
		else if (!listed(out, name, len))
			rc = vv_names_add(out, name, len, 0, true);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int remove_object(struct vv_store *s, const char *name)
{
	struct ram_place *p = place_of(s);
	struct ram_object **o;

	pthread_mutex_lock(&lock);
	o = find(p, name);
	if (o) {
		object_unref(*o);
		*o = p->object[--p->n];
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int take_lock(struct vv_store *s, const char *name, struct vv_lock **out)
{
	struct ram_place *p = place_of(s);
	struct vv_lock *l = vv_mem_new(1, sizeof(*l));
	size_t free_slot = 16;
	int rc = 0;

	if (!l)
		return VV_ENOMEM;
	l->store = s;
	l->name = vv_mem_strdup(name);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < 16; i++) {
		if (!p->locked[i])
			free_slot = i;
		else if (strcmp(p->locked[i], name) == 0)
			rc = vv_err_set(VV_EBUSY, "'%s/%s' is being written by another session of this process", s->url,
					name);
	}
	if (rc == 0 && (!l->name || free_slot == 16))
		rc = vv_err_set(VV_ENOMEM, "no room for a lock on '%s'", name);
	if (rc == 0)
		p->locked[free_slot] = l->name;
	pthread_mutex_unlock(&lock);
	if (rc) {
		vv_mem_free(l->name);
		vv_mem_free(l);
		return rc;
	}
	*out = l;
	return 0;
}

static void drop_lock(struct vv_lock *l)
{
	struct ram_place *p = place_of(l->store);

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < 16; i++)
		if (p->locked[i] == l->name)
			p->locked[i] = NULL;
	pthread_mutex_unlock(&lock);
	vv_mem_free(l->name);
	vv_mem_free(l);
}

static void place_free(struct ram_place *p)
{
	for (size_t i = 0; i < p->n; i++)
		object_unref(p->object[i]);
	vv_mem_free(p->object);
	vv_mem_free(p->name);
	vv_mem_free(p);
}

static void close_store(struct vv_store *s)
{
	struct ram_place *p = place_of(s);

	pthread_mutex_lock(&lock);
	if (p && --p->users == 0) {
		struct ram_place **at = &places;

		while (*at != p)
			at = &(*at)->next;
		*at = p->next;
		place_free(p);
	}
	pthread_mutex_unlock(&lock);
	vv_backend_fini(s);
	vv_mem_free(s);
}

static const struct vv_store_ops ops = {
	.put_open = put_open,
	.put_write = put_write,
	.put_commit = put_commit,
	.put_abort = put_abort,
	.get_open = get_open,
	.get_read = get_read,
	.get_close = get_close,
	.list = list,
	.remove = remove_object,
	.locks = { .take = take_lock, .release = drop_lock },
	.close = close_store,
};

/* Under the lock: finds or makes the store of that name, and adds a user. */
static struct ram_place *join(const char *name)
{
	struct ram_place *p = places;

	VV_HELD(&lock);
	while (p && strcmp(p->name, name) != 0)
		p = p->next;
	if (!p) {
		p = vv_mem_new(1, sizeof(*p));
		if (!p)
			return NULL;
		p->name = vv_mem_strdup(name);
		if (!p->name) {
			vv_mem_free(p);
			return NULL;
		}
		p->next = places;
		places = p;
	}
	p->users++;
	return p;
}

int vv_ram_open(const char *url, const struct vv_store_options *opt, struct vv_store **out)
{
	struct ram_store *s = vv_mem_new(1, sizeof(*s));

	if (!s)
		return VV_ENOMEM;
	if (vv_backend_init(&s->base, &ops, url, opt) < 0) {
		vv_mem_free(s);
		return VV_ENOMEM;
	}
	pthread_mutex_lock(&lock);
	s->place = join(url);
	pthread_mutex_unlock(&lock);
	if (!s->place) {
		vv_backend_fini(&s->base);
		vv_mem_free(s);
		return VV_ENOMEM;
	}
	*out = &s->base;
	return 0;
}
