/* Chooses the codec and the recipe of a block. The best choice for numbers is tested at intervals,
 * separately for each form of numbers. */
#ifndef VV_ENGINE_WRITE_CODEC_CHOICE_H
#define VV_ENGINE_WRITE_CODEC_CHOICE_H

#include "codec/codec.h"
#include <stdbool.h>

enum { VV_CODEC_CHOICE_FORMS = 32 };

#define VV_CODEC_CHOICE_LEAST 0.05 /* a smaller part of the bytes is not worth saving */


struct vv_codec_choice_result {
	struct vv_form form;
	uint64_t at; /* 1 + the bytes before it when it was tried */
	const struct vv_codec *codec; /* codec for the recipe; NULL: the default one is as good */
	struct vv_recipe recipe;
};

struct vv_codec_choice {
	/* for bytes not known to be numbers; NULL: nothing is compressed */
	const struct vv_codec *codec;
	int level;
	struct vv_codec_choice_result result[VV_CODEC_CHOICE_FORMS];
	size_t n_results;
};

struct vv_block_writer_options;

/* From the option's text: "none", "zstd:3", "auto". */
int vv_codec_choice_parse(const char *text, struct vv_block_writer_options *out);
void vv_codec_choice_init(struct vv_codec_choice *c, const struct vv_codec *codec, int level);
/* Room for n bytes, compressed as chosen; `any`: in any possible way. */
size_t vv_codec_choice_bound(const struct vv_codec_choice *c, size_t n, bool any);
/* Is a trial due for numbers of this form after `before` bytes? */
bool vv_codec_choice_is_due(const struct vv_codec_choice *c, const struct vv_form *form, uint64_t before);
void vv_codec_choice_try(struct vv_codec_choice *c, const struct vv_form *form, uint64_t before, const uint8_t *p, size_t n);
const struct vv_codec *vv_codec_choice_codec(const struct vv_codec_choice *c, const struct vv_form *form, struct vv_recipe *how);

/* The basis of the decision of `auto`. Compression pays if the store's time for the saved bytes
 * exceeds the time of compression. Both are measured over the whole session. Compression is
 * measured as processor time, which other load does not lengthen. */
struct vv_costs {
	/* of samples; the time is divided by the number of compressing threads */
	uint64_t coded_bytes, coded_ns;
	/* compression pays if it saves more than this part of the bytes; 0: not known */
	double price;
	/* The ranks of a group have one price: engine/epoch/commit_ranks.c sets it after each
	 * epoch. */
	bool shared;
};

/* Sets the price from the measured speeds of a store and of compression. It changes only by more
 * than a fifth. */
void vv_codec_choice_set_price(struct vv_costs *c, double written_bytes, double written_ns, double coded_bytes, double coded_ns);
/* Compresses a sample on one of `width` threads. Returns the part of its bytes that this saves, and
 * adds its cost to `costs`. */
double vv_codec_choice_sample(struct vv_costs *costs, const struct vv_codec *c, const struct vv_recipe *how, int level, const uint8_t *p, size_t n,
			unsigned width);
bool vv_codec_choice_pays(const struct vv_costs *c, double saved);

#endif
