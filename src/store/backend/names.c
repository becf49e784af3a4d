#include "store/backend/names.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

int vv_names_add(struct vv_names *v, const char *name, size_t len, uint64_t size, bool is_dir)
{
	char *copy;

	if (vv_mem_room(&v->v, v->n, &v->cap, sizeof(*v->v)) < 0)
		return VV_ENOMEM;
	copy = vv_mem_new(len + 1, 1);
	if (!copy)
		return VV_ENOMEM;
	memcpy(copy, name, len);
	v->v[v->n++] = (struct vv_name){ copy, size, is_dir };
	return 0;
}

void vv_names_fini(struct vv_names *v)
{
	for (size_t i = 0; i < v->n; i++)
		vv_mem_free(v->v[i].name);
	vv_mem_free(v->v);
	*v = (struct vv_names){ 0 };
}
