#include "engine/write/codec_choice.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/recipe_search.h"
#include "core/format/head.h"
#include "engine/write/block_writer.h"
#include <stdlib.h>
#include <string.h>

enum {
	STRETCHES = 3, /* samples of a block */
	EVERY = 16 << 20,
	REMEMBERED = 4 << 20, /* bytes of samples */
};

static const double steady = 1.2; /* a price changes only by more than this */

int vv_codec_choice_parse(const char *text, struct vv_block_writer_options *out)
{
	size_t n = strcspn(text, ":");

	out->codec = NULL;
	out->automatic = strcmp(text, "auto") == 0;
	if (strcmp(text, "none") == 0)
		return 0;
	out->codec = out->automatic ? vv_codec_named("zstd", 4) : vv_codec_named(text, n);
	if (out->automatic && !out->codec)
		out->codec = vv_codec_named("lz4", 3);
	if (!out->codec)
		return out->automatic ? 0 : vv_err_set(VV_ENOTSUP, "codec '%s': this varve was built without it", text);
	out->level = text[n] ? atoi(text + n + 1) : out->codec->usual_level;
	if (text[n] && (out->level < out->codec->min_level || out->level > out->codec->max_level))
		return vv_err_set(VV_EINVAL, "codec '%s': levels are %d to %d", text, out->codec->min_level,
				  out->codec->max_level);
	return 0;
}

void vv_codec_choice_init(struct vv_codec_choice *c, const struct vv_codec *codec, int level)
{
	*c = (struct vv_codec_choice){ .codec = codec, .level = level };
}

static void take(const struct vv_codec_choice *c, struct vv_codec_choice_result *t, struct vv_recipe how)
{
	if (how.coder == VV_CODEC_ZSTD && c->level > how.level)
		how.level = (int8_t)c->level;
	t->recipe = how;
	t->codec = vv_codec_numbered(vv_recipe_search_codec(&how));
}

/* Recipes require zstd. */
static bool can_choose(const struct vv_codec_choice *c)
{
	return c->codec && c->codec->number == VV_CODEC_ZSTD;
}

size_t vv_codec_choice_bound(const struct vv_codec_choice *c, size_t n, bool any)
{
	size_t most = c->codec ? c->codec->bound(n) : 0;

	for (const struct vv_codec *const *x = vv_codec_all(); *x; x++)
		if ((any || (can_choose(c) && (*x)->recipe)) && (*x)->bound(n) > most)
			most = (*x)->bound(n);
	return most;
}

static const struct vv_codec_choice_result *find(const struct vv_codec_choice *c, const struct vv_form *form)
{
	for (size_t i = 0; i < c->n_results; i++)
		if (vv_recipe_same_form(&c->result[i].form, form))
			return &c->result[i];
	return NULL;
}

bool vv_codec_choice_is_due(const struct vv_codec_choice *c, const struct vv_form *form, uint64_t before)
{
	const struct vv_codec_choice_result *t = find(c, form);

	return can_choose(c) && vv_head_type_size(form->type) > 1 && (!t || before + 1 - t->at >= EVERY);
}

/* A slot for the form: its own, a new one, or the one tried longest ago. */
static struct vv_codec_choice_result *place_for(struct vv_codec_choice *c, const struct vv_form *form)
{
	struct vv_codec_choice_result *oldest = &c->result[0];

	for (size_t i = 0; i < c->n_results; i++) {
		if (vv_recipe_same_form(&c->result[i].form, form))
			return &c->result[i];
		if (c->result[i].at < oldest->at)
			oldest = &c->result[i];
	}
	return c->n_results < VV_CODEC_CHOICE_FORMS ? &c->result[c->n_results++] : oldest;
}

/* Stretches from the beginning, the middle and the end, each beginning with a number. */
static size_t take_samples(const uint8_t *p, size_t n, size_t unit, struct vv_sample *out)
{
	size_t k = 0;

	if (n <= (size_t)STRETCHES * VV_RECIPE_SEARCH_BYTES) {
		for (size_t at = 0; at < n; at += out[k++].n)
			out[k] = (struct vv_sample){ p + at, n - at < VV_RECIPE_SEARCH_BYTES ? n - at : VV_RECIPE_SEARCH_BYTES };
		return k;
	}
	for (; k < STRETCHES; k++) {
		size_t at = (n - VV_RECIPE_SEARCH_BYTES) / (STRETCHES - 1) * k;

		out[k] = (struct vv_sample){ p + at - at % unit, VV_RECIPE_SEARCH_BYTES };
	}
	return k;
}

void vv_codec_choice_try(struct vv_codec_choice *c, const struct vv_form *form, uint64_t before, const uint8_t *p, size_t n)
{
	struct vv_codec_choice_result *t = place_for(c, form);
	struct vv_sample sample[STRETCHES];
	struct vv_recipe_search search = { 0 };

	*t = (struct vv_codec_choice_result){ .form = *form, .at = before + 1 };
	n = take_samples(p, n, vv_head_type_size(form->type), sample);
	if (vv_recipe_search_choose(form, VV_EFFORT_DEFAULT, true, sample, n, &search) < 0)
		return;
	take(c, t, search.recipe);
}

const struct vv_codec *vv_codec_choice_codec(const struct vv_codec_choice *c, const struct vv_form *form, struct vv_recipe *how)
{
	const struct vv_codec_choice_result *t = find(c, form);

	*how = t && t->codec ? t->recipe : vv_recipe_plain(1);
	return t && t->codec ? t->codec : c->codec;
}

void vv_codec_choice_set_price(struct vv_costs *c, double written_bytes, double written_ns, double coded_bytes, double coded_ns)
{
	double price;

	if (!(written_bytes > 0 && written_ns > 0 && coded_bytes > 0 && coded_ns > 0))
		return;
	price = written_bytes / written_ns * (coded_ns / coded_bytes);
	if (c->price <= 0 || price > c->price * steady || price * steady < c->price)
		c->price = price;
}

/* Newer samples have more weight: older ones are halved. */
static void note_cost(struct vv_costs *c, size_t n, double seconds, unsigned width)
{
	if (c->coded_bytes >= REMEMBERED) {
		c->coded_bytes /= 2;
		c->coded_ns /= 2;
	}
	c->coded_bytes += n;
	c->coded_ns += (uint64_t)(seconds * 1e9 / width) + 1;
}

double vv_codec_choice_sample(struct vv_costs *costs, const struct vv_codec *c, const struct vv_recipe *how, int level, const uint8_t *p, size_t n,
			unsigned width)
{
	size_t cap = c->bound(n), got = 0;
	uint8_t *to = vv_mem_new(cap, 1);
	int rc = to ? 0 : VV_ENOMEM;
	double start;

	/* warm-up: memory of the codec and caches are not part of its cost */
	if (rc == 0 && costs->coded_bytes == 0)
		rc = c->encode(p, n, how, to, cap, level, &got);
	start = vv_clock_own_s();
	if (rc == 0)
		rc = c->encode(p, n, how, to, cap, level, &got);
	if (rc == 0)
		note_cost(costs, n, vv_clock_own_s() - start, width);
	vv_mem_free(to);
	return rc == 0 && got && got < n ? 1 - (double)got / (double)n : 0;
}

bool vv_codec_choice_pays(const struct vv_costs *c, double saved)
{
	return saved > VV_CODEC_CHOICE_LEAST && c->price > 0 && saved > c->price;
}
