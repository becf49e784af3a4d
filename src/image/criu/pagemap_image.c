#include "image/criu/pagemap_image.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include "reader/pagemap.h"
#include <unistd.h>

static int nonsense(void)
{
	return vv_err_set(VV_EDAMAGED, "the map of its pages makes no sense");
}

void vv_pagemap_image_fini(struct vv_pagemap_image *m)
{
	vv_mem_free(m->v);
	*m = (struct vv_pagemap_image){ 0 };
}

static int add(struct vv_pagemap_image *m, const struct vv_pagemap_range *r)
{
	uint64_t end = m->n ? m->v[m->n - 1].addr + m->v[m->n - 1].len : 0, page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (r->pages == 0 || r->pages > VV_MAX_REGION_BYTES / page || r->address % page || r->address < end || r->address > UINT64_MAX - r->pages * page)
		return nonsense();
	if (vv_mem_room(&m->v, m->n, &m->cap, sizeof(*m->v)) < 0)
		return VV_ENOMEM;
	m->v[m->n++] = (struct vv_pagemap_image_entry){ r->address, r->pages * page, m->len, r->lazy };
	m->len += r->pages * page;
	return m->len > VV_MAX_REGION_BYTES ? nonsense() : 0;
}

int vv_pagemap_image_read(const uint8_t *image, size_t n, struct vv_pagemap_image *out)
{
	struct vv_pagemap_range r;
	struct vv_proto left;
	int rc = 0;

	*out = (struct vv_pagemap_image){ 0 };
	left = vv_pagemap_open(image, n, &out->pages);
	while (rc == 0 && vv_pagemap_next(&left, &r))
		rc = add(out, &r);
	if (rc == 0 && (left.n || !out->pages))
		rc = nonsense();
	if (rc)
		vv_pagemap_image_fini(out);
	return rc;
}
