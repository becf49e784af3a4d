/* Which codec a block gets, and by which recipe: what is best for numbers is tried now and then, for each form of them by itself. */
#ifndef VV_ENGINE_WRITE_CODEC_CHOICE_H
#define VV_ENGINE_WRITE_CODEC_CHOICE_H

#include "codec/codec.h"
#include <stdbool.h>

enum { VV_CODEC_CHOICE_FORMS = 32 };

#define VV_CODEC_CHOICE_LEAST 0.05 /* less than this part of the bytes is not worth saving */


struct vv_codec_choice_result {
	struct vv_form form;
	uint64_t at; /* how many bytes were before it when it was tried, and 1 */
	const struct vv_codec *codec; /* that codes by the recipe; NULL: the usual one is as good */
	struct vv_recipe recipe;
};

struct vv_codec_choice {
	const struct vv_codec *codec; /* for what is not known to be numbers; NULL: nothing is coded */
	int level;
	struct vv_codec_choice_result result[VV_CODEC_CHOICE_FORMS];
	size_t n_results;
};

struct vv_block_writer_options;

/* From the option's text: "none", "zstd:3", "auto". */
int vv_codec_choice_parse(const char *text, struct vv_block_writer_options *out);
void vv_codec_choice_init(struct vv_codec_choice *c, const struct vv_codec *codec, int level);
/* Room for n bytes, coded as is chosen; `any`: in whatever way. */
size_t vv_codec_choice_bound(const struct vv_codec_choice *c, size_t n, bool any);
/* Is it to be tried on the numbers of that form that come after `before` bytes? */
bool vv_codec_choice_is_due(const struct vv_codec_choice *c, const struct vv_form *form, uint64_t before);
void vv_codec_choice_try(struct vv_codec_choice *c, const struct vv_form *form, uint64_t before, const uint8_t *p, size_t n);
const struct vv_codec *vv_codec_choice_codec(const struct vv_codec_choice *c, const struct vv_form *form, struct vv_recipe *how);

/* What `auto` decides by. Coding pays where the time that the store would take for the bytes saved is more than the coder's. Both are measured over the
 * whole session, the coder's as processor time, which other load does not lengthen. */
struct vv_costs {
	uint64_t coded_bytes, coded_ns; /* of samples; the time is divided by the threads that code */
	double price; /* coding pays if it saves more than this part of the bytes; 0: not known */
	bool shared;  /* the ranks of a group have one price: engine/session/commit_ranks.c sets it after each epoch */
};

/* The price by what a store took in some time, and a coder. It follows only what differs by more than a fifth. */
void vv_codec_choice_set_price(struct vv_costs *c, double written_bytes, double written_ns, double coded_bytes, double coded_ns);
/* Codes a sample on one of `width` threads: the part of its bytes that this saves, and what it costs. */
double vv_codec_choice_sample(struct vv_costs *costs, const struct vv_codec *c, const struct vv_recipe *how, int level, const uint8_t *p, size_t n,
			unsigned width);
bool vv_codec_choice_pays(const struct vv_costs *c, double saved);

#endif
