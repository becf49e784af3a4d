/* The option `tiers`: further stores of a lineage, nearest first, each with its settings. */
#ifndef VV_ENGINE_TIER_LIST_H
#define VV_ENGINE_TIER_LIST_H

#include "base/conf.h"

enum { VV_TIER_LIST_MAX = 16 };

struct vv_tier_setting {
	char *url; /* a path is absolute */
	uint64_t every;     /* epochs */
	double mtbf;        /* seconds; above 0: the interval follows from it, not from `every` */
	uint64_t keep;      /* epochs; 0: all */
	uint64_t bandwidth; /* bytes per second; 0: no limit */
	bool last;          /* the last epoch of a session is due when the session closes */
};

struct vv_tier_list {
	struct vv_tier_setting v[VV_TIER_LIST_MAX];
	size_t n;
};

/* nearest: the store of the session. The error names the tier and the setting. Call fini even after
 * an error. */
int vv_tier_list_read(const struct vv_conf *conf, const char *nearest, struct vv_tier_list *out);
void vv_tier_list_fini(struct vv_tier_list *l);
/* The URL of a store, with an absolute path. The caller frees it. NULL: an error is set. */
char *vv_tier_list_absolute(const char *url);

#endif
