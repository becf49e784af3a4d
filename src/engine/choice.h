/* Which codec a block gets: numbers may be smaller as byte planes, which is tried now and then, for each width by itself. */
#ifndef VV_ENGINE_CHOICE_H
#define VV_ENGINE_CHOICE_H

#include "codec/codec.h"
#include <stdbool.h>

enum { VV_CHOICE_WIDEST = 16 };

struct vv_choice {
	const struct vv_codec *codec; /* for what is not known to be numbers; NULL: nothing is coded */
	const struct vv_codec *planes; /* NULL: never */
	int level;
	struct {
		uint64_t at; /* how many bytes were before it when it was tried, and 1 */
		bool better;
	} tried[VV_CHOICE_WIDEST + 1]; /* by width */
};

void vv_choice_init(struct vv_choice *c, const struct vv_codec *codec, int level);
/* Room for n bytes, coded. */
size_t vv_choice_bound(const struct vv_choice *c, size_t n);
/* Is it to be tried on the numbers of that width that come after `before` bytes? */
bool vv_choice_is_due(const struct vv_choice *c, unsigned width, uint64_t before);
void vv_choice_try(struct vv_choice *c, unsigned width, uint64_t before, const uint8_t *p, size_t n);
const struct vv_codec *vv_choice_codec(const struct vv_choice *c, unsigned width);

#endif
