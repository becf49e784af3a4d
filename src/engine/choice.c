#include "engine/choice.h"
#include "base/mem.h"
#include <string.h>

enum {
	STRETCH = 32 << 10, /* three of these are tried */
	SAMPLE = 3 * STRETCH,
	EVERY = 16 << 20,
	WORTH = 32, /* planes must be smaller by one part in so many */
};

void vv_choice_init(struct vv_choice *c, const struct vv_codec *codec, int level)
{
	*c = (struct vv_choice){ .codec = codec, .level = level };
	if (codec && codec->number == VV_CODEC_ZSTD)
		c->planes = vv_codec_numbered(VV_CODEC_PLANES);
}

size_t vv_choice_bound(const struct vv_choice *c, size_t n)
{
	size_t plain = c->codec ? c->codec->bound(n) : 0, planes = c->planes ? c->planes->bound(n) : 0;

	return plain > planes ? plain : planes;
}

static bool is_number(const struct vv_choice *c, unsigned width)
{
	return c->planes && width > 1 && width <= VV_CHOICE_WIDEST;
}

bool vv_choice_is_due(const struct vv_choice *c, unsigned width, uint64_t before)
{
	return is_number(c, width) && (!c->tried[width].at || before + 1 - c->tried[width].at >= EVERY);
}

/* All, or stretches from its beginning, its middle, its end. */
static size_t take_sample(const uint8_t *p, size_t n, uint8_t *to)
{
	size_t step = n > SAMPLE ? (n - STRETCH) / 2 / VV_CHOICE_WIDEST * VV_CHOICE_WIDEST : STRETCH;

	for (size_t k = 0; n > SAMPLE && k < 3; k++)
		memcpy(to + k * STRETCH, p + k * step, STRETCH);
	if (n > SAMPLE)
		return SAMPLE;
	memcpy(to, p, n);
	return n;
}

/* Bytes that the codec makes of them. */
static size_t coded_len(const struct vv_codec *c, const uint8_t *p, size_t n, unsigned width, int level, uint8_t *to, size_t cap)
{
	struct vv_recipe how = vv_recipe_plain(width);
	size_t got = 0;

	return c->encode(p, n, &how, to, cap, level, &got) == 0 && got ? got : n;
}

void vv_choice_try(struct vv_choice *c, unsigned width, uint64_t before, const uint8_t *p, size_t n)
{
	size_t cap = vv_choice_bound(c, SAMPLE), planes, plain;
	uint8_t *sample = vv_mem_grow(NULL, SAMPLE + cap, 1), *to = sample + SAMPLE;

	c->tried[width].at = before + 1;
	c->tried[width].better = false;
	if (!sample)
		return;
	n = take_sample(p, n, sample);
	planes = coded_len(c->planes, sample, n, width, c->level, to, cap);
	plain = coded_len(c->codec, sample, n, 1, c->level, to, cap);
	c->tried[width].better = planes < plain - plain / WORTH;
	vv_mem_free(sample);
}

const struct vv_codec *vv_choice_codec(const struct vv_choice *c, unsigned width)
{
	return is_number(c, width) && c->tried[width].better ? c->planes : c->codec;
}
