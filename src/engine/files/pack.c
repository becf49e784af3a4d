/* Writes one epoch from files. It shares the session, the pass and the commit with memory. It
 * differs in the source of the bytes (file_set.c) and the compression of each kind (recipes.c).
 * Bytes are ordered by kind (pack_pipeline.c). */
#include "engine/files/pack.h"
#include "engine/lineage/run_table.h"
#include "engine/session/enter.h"
#include "engine/epoch/background.h"
#include "engine/epoch/tip.h"
#include "engine/threads.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/plan/pack_order.h"
#include "engine/epoch/epoch.h"
#include "engine/files/pack_pipeline.h"
#include "engine/files/rank_handover.h"
#include "engine/files/stream_input.h"
#include "engine/files/recipes.h"
#include "engine/files/pack_regions.h"
#include "engine/files/parent_files.h"
#include "engine/ranks/group.h"
#include "engine/epoch/load_parent.h"
#include "engine/read/restore.h"
#include <string.h>

enum {
	SMALL = 64,
	BLOCK_PAPER = 4096,
	CHUNKS = 1 << 20,                /* of a rank's share; with more bytes, chunks are larger */
	DIGESTS_OTHERS = 1 << 19,        /* of content that other ranks stored */
	MEMORY_SLABS = 48 << 20,
	MEMORY_CODING = 64 << 20, /* uncompressed bytes; twice that with the compressed ones */
	/* limit of the memory size that the index of earlier epochs is scaled by */
	MEMORY_INDEX = 320 << 20,
	/* with one core: for so few bytes, another thread costs more than waiting for the sink */
	LITTLE = 32 << 20,
	FEW = 4 << 20,                   /* so few bytes do not fill large pages */
	/* fewer compressed bytes do not show how well a recipe performs */
	LEAST_REPORTED = 64 << 10,
};

struct pack {
	struct varve *v;
	const struct vv_pack_options *opt;
	const struct vv_pack_file *file; /* files of this rank */
	size_t n_files;
	struct vv_similarity_key *similarity_key;
	struct vv_file_set file_set;
	struct vv_manifest before;
	struct vv_other_ranks_index others;
	struct vv_rank_dedup_rounds *shares;
	struct vv_rank_handover *handover;
	struct vv_pack_pipeline *feed;
	struct vv_parent_files *parent; /* NULL: nothing is stored as a difference */
	struct vv_manifest manifest;
	bool coding;
	bool more; /* the stream input has more */
};

/* ---- the newest epoch ------------------------------------------------------------------------ */

static int read_manifest(struct pack *k, const struct vv_run_table_region *r)
{
	struct vv_want want = { &r->runs, 0, r->shape.len, NULL, NULL };
	uint8_t *bytes = vv_mem_new((size_t)r->shape.len, 1);
	int rc = bytes ? 0 : VV_ENOMEM;

	want.to = bytes;
	if (rc == 0)
		rc = vv_restore_read(&k->v->ctx.lineage, k->v->ctx.pool, &want, 1);
	if (rc == 0)
		rc = vv_manifest_get(&k->before, bytes, (size_t)r->shape.len);
	vv_mem_free(bytes);
	return rc == VV_ENOMEM ? rc : 0;
}

/* Blocks may be differences to those of the newest epoch. Not where several ranks pack: their
 * layers may lie in stores of their own. Not for streams: their files are not at hand for samples.
 * Nor where reading the bases takes longer than storing the bytes. */
static int keep_table(struct pack *k, struct vv_run_table *t)
{
	static const int match_levels[] = { [VV_PACK_FAST] = 3, [VV_PACK_DEFAULT] = 3, [VV_PACK_MAX] = 9 };
	const char *how = vv_conf_text(&k->v->ctx.conf, "delta");
	bool most = strcmp(how, "max") == 0;
	enum vv_parent_files_aim aim = most                            ? VV_PARENT_FILES_SIZE
				       : k->opt->effort == VV_PACK_MAX ? VV_PARENT_FILES_RESTART_AT_MAX
								       : VV_PARENT_FILES_RESTART;

	if (strcmp(how, "none") == 0 || k->v->ctx.group || k->opt->stream_input || k->opt->scheme != VV_PACK_AUTO || !k->coding ||
	    !vv_codec_numbered(VV_CODEC_TYPED) || t->rank != k->v->ctx.rank)
		return 0;
	if (!most && (k->opt->effort == VV_PACK_FAST || k->v->ctx.store->is_remote))
		return 0;
	return vv_parent_files_new(k->v, t, aim, match_levels[k->opt->effort], &k->parent);
}

/* Reads the newest epoch, written by any ranks. Its manifest saves samples, and content that its
 * ranks stored need not be stored again. An unreadable epoch is ignored. An epoch of a program is
 * an error: the program could not restart from its lineage if the newest epoch held files. */
static int look_back(struct pack *k)
{
	struct varve *v = k->v;
	struct vv_run_table t = { 0 };
	uint64_t epoch = 0;
	size_t at;
	int rc = vv_catalog_newest(&v->ctx.lineage, VV_MAX_EPOCH + 1, &epoch);

	if (rc || !epoch)
		return rc ? rc : vv_other_ranks_index_load(v, 0, DIGESTS_OTHERS, &k->others);
	if (vv_run_table_load(&v->ctx.lineage, epoch, v->ctx.rank, NULL, &t) < 0 && vv_run_table_load(&v->ctx.lineage, epoch, 0, NULL, &t) < 0) {
		vv_err_clear();
		return 0;
	}
	at = vv_run_table_find(&t, VV_MANIFEST_REGION);
	if (at == t.n)
		rc = vv_err_set(VV_EINVAL, "lineage '%s' holds checkpoints of a program, which could not restart any more from a newer epoch of files: "
				"pack them into another lineage", v->ctx.lineage.name);
	else
		rc = read_manifest(k, &t.region[at]);
	if (rc == 0)
		rc = vv_other_ranks_index_load(v, epoch, DIGESTS_OTHERS, &k->others);
	if (rc == 0)
		rc = keep_table(k, &t);
	vv_run_table_fini(&t);
	return rc;
}

/* ---- placing --------------------------------------------------------------------------------- */

/* A larger set has larger chunks, so that the memory for the index and the stored digests stay
 * bounded. */
static size_t chunk_for(const struct varve *v, uint64_t bytes)
{
	size_t chunk = (size_t)vv_conf_number(&v->ctx.conf, "chunk");

	while (chunk < VV_MAX_CHUNK && bytes / chunk > CHUNKS)
		chunk *= 2;
	return chunk;
}

/* Feeds all strands of an order. kind: the kind of all spans, or UINT32_MAX for each span's own. */
static int feed_strands(struct vv_pack_pipeline *feed, const struct vv_file_span *span, struct vv_pack_order_iterator *b, uint32_t kind)
{
	struct vv_pack_order_piece s;
	int rc = 0;

	while (rc == 0 && vv_pack_order_next(b, &s)) {
		const struct vv_file_span *x = &span[s.span];

		rc = vv_pack_pipeline_add(feed, kind == UINT32_MAX ? x->kind_id : kind, x->file, x->at + s.from, s.len);
	}
	return rc;
}

/* Feeds a stretch of each file in turn. */
static int feed_in_turn(struct pack *k, struct vv_pack_pipeline *feed, const uint32_t *list, size_t n, uint64_t stretch)
{
	struct vv_file_span *span = vv_mem_new(n, sizeof(*span));
	struct vv_pack_order_iterator *b = NULL;
	int rc = span ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		span[i] = k->file_set.span[list[i]];
		span[i].kind_id = 1;
	}
	if (rc == 0)
		rc = vv_pack_order_new(VV_PACK_ORDER_AWARE_BLOCK, span, n, 0, stretch, &b);
	if (rc == 0)
		rc = feed_strands(feed, span, b, k->file_set.span[list[0]].kind_id);
	vv_pack_order_free(b);
	vv_mem_free(span);
	return rc;
}

static uint64_t stretch_of(const struct vv_file_set_kind *k, size_t chunk)
{
	size_t stretch = k->segment ? VV_RECIPES_INTERLEAVE_MEMORY : VV_RECIPES_INTERLEAVE;

	return chunk > stretch ? chunk : stretch;
}

static int feed_by_kind(struct pack *k, struct vv_pack_pipeline *feed, size_t chunk)
{
	uint32_t *order = NULL;
	int rc = vv_file_set_by_kind(&k->file_set, &order);

	for (size_t i = 0, n; rc == 0 && i < k->file_set.n_spans; i += n) {
		uint32_t kind = k->file_set.span[order[i]].kind_id;

		for (n = 1; i + n < k->file_set.n_spans && k->file_set.span[order[i + n]].kind_id == kind;)
			n++;
		if (k->file_set.kind[kind].interleaved) {
			rc = feed_in_turn(k, feed, order + i, n, stretch_of(&k->file_set.kind[kind], chunk));
			continue;
		}
		for (size_t a = i; rc == 0 && a < i + n; a++) {
			const struct vv_file_span *s = &k->file_set.span[order[a]];

			rc = vv_pack_pipeline_add(feed, kind, s->file, s->at, s->len);
		}
	}
	vv_mem_free(order);
	return rc;
}

/* Feeds the stream input, one memory load at a time. */
static int feed_stream_input(struct pack *k, struct vv_pack_pipeline *feed, size_t chunk)
{
	int rc = feed_by_kind(k, feed, chunk);

	while (rc == 0 && k->more) {
		rc = vv_pack_pipeline_drain(feed);
		if (rc == 0)
			rc = vv_stream_input_take(k->opt->stream_input, &k->file_set, &k->more);
		if (rc == 0)
			rc = vv_recipes_decide(k->v, &k->file_set, &k->before, k->opt, chunk, k->coding);
		if (rc == 0)
			rc = feed_by_kind(k, feed, chunk);
	}
	return rc;
}

static int feed_interleaved(struct pack *k, struct vv_pack_pipeline *feed)
{
	static const enum vv_pack_order scheme[] = {
		[VV_PACK_AGNOSTIC] = VV_PACK_ORDER_AGNOSTIC,
		[VV_PACK_AGNOSTIC_BLOCK] = VV_PACK_ORDER_AGNOSTIC_BLOCK,
		[VV_PACK_AWARE] = VV_PACK_ORDER_AWARE,
		[VV_PACK_AWARE_BLOCK] = VV_PACK_ORDER_AWARE_BLOCK,
	};
	struct vv_pack_order_iterator *b = NULL;
	int rc = vv_pack_order_new(scheme[k->opt->scheme], k->file_set.span, k->file_set.n_spans, k->opt->group,
			      k->opt->block ? k->opt->block : BLOCK_PAPER, &b);

	if (rc == 0)
		rc = feed_strands(feed, k->file_set.span, b, UINT32_MAX);
	vv_pack_order_free(b);
	return rc;
}

/* ---- the manifest ---------------------------------------------------------------------------- */

/* Later epochs compare a recipe with its first real ratio: a sample does not show how many bytes
 * dedup leaves. Differences to the epoch before show nothing about the recipe. */
static uint32_t expected_ratio(const struct vv_file_set_kind *from, const struct vv_manifest_kind *did)
{
	uint64_t ratio = did->stored ? did->fresh * 1000 / did->stored : 0;

	if (from->age || from->delta || did->fresh < LEAST_REPORTED || !from->expected_ratio)
		return from->expected_ratio;
	return ratio < UINT32_MAX ? (uint32_t)ratio : UINT32_MAX;
}

static int manifest_kinds(struct pack *k, const struct vv_blocks *blocks)
{
	for (size_t i = 0; i < k->file_set.n_kinds; i++) {
		const struct vv_file_set_kind *from = &k->file_set.kind[i];
		struct vv_manifest_kind *to;

		if (from->raw == 0 && from->placed.n_ranges == 0)
			continue;
		to = vv_manifest_add_kind(&k->manifest, from->key);
		if (!to)
			return VV_ENOMEM;
		to->type = from->first.type;
		to->width = from->first.width ? from->first.width : 1;
		to->swapped = from->first.swapped;
		to->ndim = from->first.ndim;
		memcpy(to->dim, from->first.dim, sizeof(to->dim));
		to->instances = from->instances;
		to->raw = from->raw;
		for (size_t r = 0; r < from->placed.n_ranges; r++) {
			to->fresh += from->placed.range[r].to - from->placed.range[r].from;
			to->stored += vv_payload_stored(blocks, from->placed.range[r].from, from->placed.range[r].to);
		}
		to->segment = from->segment;
		to->zero = from->placed.zero;
		to->dup_time = from->placed.dup_time;
		to->dup_space = from->placed.dup_space;
		to->recipe = from->recipe;
		to->merged = from->merged;
		to->expected_ratio = expected_ratio(from, to);
		to->basis = from->basis;
		to->age = from->age;
	}
	return 0;
}

static int manifest_files(struct pack *k)
{
	for (size_t i = 0; i < k->file_set.n_files; i++) {
		const struct vv_file_set_file *from = &k->file_set.file[i];
		struct vv_manifest_file *to = vv_manifest_add_file(&k->manifest, from->name);

		if (!to)
			return VV_ENOMEM;
		to->region = (uint32_t)i;
		to->mode = (uint32_t)from->st.st_mode & 07777;
		to->mtime_s = from->st.st_mtim.tv_sec;
		to->mtime_ns = (uint32_t)from->st.st_mtim.tv_nsec;
		to->format = vv_mem_strdup(from->format);
		to->linked = from->linked;
		to->dev = from->linked ? (uint64_t)from->st.st_dev : 0;
		to->ino = from->linked ? (uint64_t)from->st.st_ino : 0;
		if (!to->format || vv_file_attributes_copy(&from->attrs, &to->attrs) < 0)
			return VV_ENOMEM;
	}
	return 0;
}

static int manifest_entries(struct pack *k)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && k->v->ctx.rank == 0 && i < k->opt->n_entries; i++)
		rc = vv_manifest_copy_entry(&k->manifest, &k->opt->entry[i]);
	return rc;
}

static int make_manifest(struct pack *k, const struct vv_blocks *blocks, struct vv_buf *out)
{
	static const char *const scheme[] = { "auto", "agnostic", "agnostic-block", "aware", "aware-block" };
	static const char *const effort[] = { "fast", "default", "max" };
	int rc;

	k->manifest.scheme = vv_mem_strdup(scheme[k->opt->scheme]);
	k->manifest.effort = vv_mem_strdup(effort[k->opt->effort]);
	rc = k->manifest.scheme && k->manifest.effort ? manifest_files(k) : VV_ENOMEM;
	if (rc == 0)
		rc = manifest_kinds(k, blocks);
	if (rc == 0)
		rc = manifest_entries(k);
	if (rc)
		return rc;
	vv_manifest_put(&k->manifest, out);
	if (out->n > VV_MANIFEST_BYTES)
		return vv_err_set(VV_EINVAL, "names and attributes of the files have %zu bytes, the limit is %d: pack fewer files at a time", out->n, VV_MANIFEST_BYTES);
	return vv_buf_check(out);
}

/* ---- one epoch ------------------------------------------------------------------------------- */

static bool is_little(const struct pack *k)
{
	return !k->opt->stream_input && k->file_set.bytes <= LITTLE && vv_pool_width(k->v->ctx.pool) == 1;
}

static bool is_few(const struct pack *k)
{
	return !k->opt->stream_input && k->file_set.bytes <= FEW;
}

static int place_all(struct pack *k, struct vv_layer_writer *p, size_t chunk, size_t block)
{
	const struct vv_pack_pipeline_options opt = {
		.chunk = chunk,
		.dedup = k->opt->scheme == VV_PACK_AUTO && k->v->ctx.dedup,
		.others = &k->others,
		.rounds = k->shares,
		.memory = MEMORY_SLABS,
		.block = block,
		.single_buffer = is_little(k),
		.small_pages = is_few(k),
		.parent = k->parent,
		.progress = k->opt->progress,
	};
	int rc = vv_pack_pipeline_open(p, &k->file_set, &opt, &k->feed);

	if (rc == 0)
		rc = k->opt->stream_input ? feed_stream_input(k, k->feed, chunk)
				    : k->opt->scheme == VV_PACK_AUTO ? feed_by_kind(k, k->feed, chunk) : feed_interleaved(k, k->feed);
	return rc ? rc : vv_pack_pipeline_drain(k->feed);
}

/* After all ranks have placed everything: writes the manifest and the regions of the files. */
static int round_off(struct pack *k, struct vv_layer_writer *p, size_t chunk)
{
	static const struct vv_recipe words = { .width = 1, .record = 1, .coder = VV_CODEC_ZSTD, .level = 6 };
	const struct vv_blocks *blocks = NULL;
	struct vv_buf manifest = { 0 };
	struct vv_runs runs = { 0 };
	int rc = vv_file_set_check(&k->file_set);

	if (rc == 0)
		rc = vv_block_writer_drain(p->block_writer, &blocks);
	if (rc == 0)
		rc = vv_file_set_check_stop(&k->file_set);
	if (rc == 0)
		rc = make_manifest(k, blocks, &manifest);
	if (rc == 0)
		rc = vv_block_writer_set_codec(p->block_writer, k->coding ? vv_codec_numbered(VV_CODEC_TYPED) : NULL, &words, chunk > 1 << 20 ? chunk : 1 << 20);
	if (rc == 0)
		rc = vv_pack_pipeline_bytes(k->feed, manifest.p, manifest.n, &runs);
	if (rc == 0)
		rc = vv_pack_regions_write(&k->file_set, &runs, manifest.n, chunk, p);
	vv_run_fini(&runs);
	vv_buf_fini(&manifest);
	return rc;
}

/* Hands over process memory that is similar on other ranks. Not if the stream comes in several
 * loads, because memory is short then; and not without compression. */
static int invite(struct pack *k, struct vv_layer_writer *p, size_t chunk, int rc)
{
	const struct vv_rank_handover_options opt = { .pack = k->opt, .others = &k->others, .chunk = chunk, .excluded = k->more || !k->coding };

	if (!k->opt->stream_input || !k->shares || vv_conf_text(&k->v->ctx.conf, "alike")[0] == 'n')
		return rc;
	return vv_rank_handover_open(p, &k->file_set, &opt, rc, &k->handover);
}

/* Replaces engine/memory/store_tiles.c, which stores the tiles of memory. */
static int load(struct vv_layer_writer *p)
{
	struct pack *k = p->source.arg;
	struct vv_block_writer_options opt = *k->v->coding;
	size_t chunk = k->opt->stream_input ? chunk_for(k->v, 0) : chunk_for(k->v, k->file_set.bytes);
	int rc = k->opt->scheme == VV_PACK_AUTO ? vv_rank_dedup_rounds_open(p, k->opt->stream_input != NULL, &k->shares) : 0;

	if (rc)
		return rc;
	if (k->opt->stream_input)
		rc = vv_stream_input_take(k->opt->stream_input, &k->file_set, &k->more);
	if (rc == 0)
		rc = vv_recipes_decide(k->v, &k->file_set, &k->before, k->opt, chunk, k->coding);
	rc = invite(k, p, chunk, rc);
	opt.copy = true;
	opt.automatic = false;
	opt.low_latency = false;
	opt.codec = k->coding ? vv_codec_named("zstd", 4) : NULL;
	opt.on_caller = is_little(k);
	opt.small_pages = is_few(k);
	opt.memory = MEMORY_CODING;
	opt.block = vv_recipes_largest_block(&k->file_set);
	if (rc == 0 && k->parent)
		rc = vv_parent_files_choose(k->parent, &k->file_set);
	opt.deltas = k->parent ? vv_parent_files_source(k->parent) : NULL;
	if (rc == 0)
		rc = vv_layer_writer_begin(p);
	if (rc == 0)
		rc = vv_layer_writer_open(p, &opt);
	if (rc == 0)
		rc = place_all(k, p, chunk, opt.block);
	rc = vv_rank_dedup_rounds_finish(k->shares, rc);
	if (rc == 0)
		rc = vv_rank_handover_return(k->handover, vv_pack_pipeline_resolve(k->feed));
	if (rc == 0)
		rc = round_off(k, p, chunk);
	vv_pack_pipeline_close(k->feed);
	vv_rank_handover_close(k->handover);
	vv_rank_dedup_rounds_close(k->shares);
	return rc;
}

static int open_file_set(struct pack *k)
{
	bool agnostic = k->opt->scheme == VV_PACK_AGNOSTIC || k->opt->scheme == VV_PACK_AGNOSTIC_BLOCK;
	struct vv_file_set_options opt = {
		.similarity_key = agnostic ? NULL : k->similarity_key,
		.small = k->opt->small ? k->opt->small : SMALL,
		.by_shape = k->opt->scheme == VV_PACK_AUTO,
		.segments = k->opt->segments,
		.stop = k->opt->stop,
		.shared = k->v->ctx.group != NULL,
	};

	if (k->opt->stream_input)
		return vv_file_set_await(k->opt->segments, &k->file_set);
	return vv_file_set_open(k->file, k->n_files, &opt, k->v->ctx.pool, &k->file_set);
}

/* All steps that can fail before there is an epoch. */
static int prepare(struct pack *k)
{
	struct varve *v = k->v;
	uint64_t bytes;
	int rc = vv_background_reserve(v->background);

	if (rc == 0)
		rc = vv_threads_start(&v->ctx);
	if (rc == 0)
		rc = vv_similarity_key_new(k->opt->key, &k->similarity_key);
	if (rc == 0)
		rc = open_file_set(k);
	bytes = k->opt->stream_input ? k->opt->stream_input->expected : k->file_set.bytes;
	v->packed_bytes = bytes < MEMORY_INDEX ? bytes : MEMORY_INDEX;
	rc = vv_load_parent_run(v, rc);
	if (rc == 0)
		rc = look_back(k);
	if (v->ctx.group)
		rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
	if (rc == 0)
		rc = vv_tip_agree_on_numbers(v);
	return rc;
}

static int write_epoch(struct pack *k)
{
	struct vv_layer_writer *p = NULL;
	int rc = prepare(k);

	if (rc)
		return rc;
	rc = vv_epoch_new(k->v, &p);
	if (k->v->ctx.group) {
		rc = vv_group_agree(k->v->ctx.group, k->v->ctx.group->comm, rc);
		if (rc)
			vv_epoch_free(p);
	}
	if (rc)
		return rc;
	p->keyframe = true;
	p->source.load = load;
	p->source.arg = k;
	return vv_background_run(p);
}

/* ---- many ranks ------------------------------------------------------------------------------ */

/* Rank 0 decides where each rank's share begins, so that all ranks agree even if they see different
 * file sizes. A share holds consecutive files, which are likely to be similar, and all shares hold
 * about equal bytes. */
static int share(struct pack *k, const struct vv_pack_file *file, size_t n)
{
	struct vv_group *g = k->v->ctx.group;
	uint64_t *first = vv_mem_new((size_t)g->size + 1, sizeof(*first));
	int rc = first ? 0 : VV_ENOMEM;

	if (rc == 0 && g->rank == 0)
		rc = vv_file_set_shares(file, n, g->size, first);
	rc = vv_group_agree(g, g->comm, rc);
	if (rc == 0)
		rc = vv_comm_bcast(g->comm, first, ((size_t)g->size + 1) * sizeof(*first), 0);
	for (uint32_t r = 0; rc == 0 && r < g->size; r++) /* all ranks return the same result */
		if (first[r] > first[r + 1] || first[r + 1] > n)
			rc = vv_err_set(VV_EPEER, "rank 0 says which files rank %u is to pack, which cannot be", r);
	if (rc == 0) {
		k->file = file + first[g->rank];
		k->n_files = (size_t)(first[g->rank + 1] - first[g->rank]);
	}
	vv_comm_free(g->comm, first);
	return rc;
}

/* A digest of the file list and options: all ranks must pack the same files. */
static uint64_t detail_of(const struct vv_pack_file *file, size_t n, const struct vv_pack_options *opt)
{
	struct vv_digest_stream s;
	uint32_t numbers[] = { (uint32_t)n, opt->scheme, opt->effort, opt->group, opt->single };

	vv_digest_stream_init(&s);
	for (size_t i = 0; i < n; i++)
		vv_digest_stream_add(&s, file[i].name, strlen(file[i].name) + 1);
	vv_digest_stream_add(&s, numbers, sizeof(numbers));
	return vv_digest_stream_check(&s);
}

static int check_names(const struct vv_pack_file *file, size_t n)
{
	struct vv_map seen = { 0 };
	int rc = n ? 0 : vv_err_set(VV_EINVAL, "there is no file to be packed");

	if (n > VV_MANIFEST_FILES - 1)
		rc = vv_err_set(VV_EINVAL, "%zu files are too many for one epoch, the format's limit is %d", n, VV_MANIFEST_FILES - 1);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (!vv_manifest_is_name(file[i].name))
			rc = vv_err_set(VV_EINVAL, "'%s' cannot be the name of a packed file: it must be relative, without '..'", file[i].name);
		else if (vv_map_get(&seen, file[i].name) != VV_MAP_NONE)
			rc = vv_err_set(VV_EINVAL, "two files are called '%s'", file[i].name);
		else
			rc = vv_map_put(&seen, file[i].name, i);
	}
	vv_map_fini(&seen);
	return rc;
}

/* ---- the public call ------------------------------------------------------------------------- */

static int report(struct pack *k, struct vv_pack_report *out)
{
	const struct varve_stats *st = &k->v->stats;
	uint64_t sum[5] = { k->file_set.n_files, k->file_set.bytes, st->bytes_new, st->bytes_stored, st->bytes_layer };
	int rc = k->v->ctx.group ? vv_comm_allreduce(k->v->ctx.group->comm, sum, 5, VARVE_SUM) : 0;

	*out = (struct vv_pack_report){ .epoch = k->v->tip.epoch,
					.files = sum[0],
					.raw = sum[1],
					.fresh = sum[2],
					.stored = sum[3],
					.layer = sum[4],
					.manifest = k->manifest,
					.left = k->file_set.left };
	k->manifest = (struct vv_manifest){ 0 };
	return rc;
}

int vv_pack_run(struct varve *v, const struct vv_pack_file *file, size_t n, const struct vv_pack_options *opt, struct vv_pack_report *out)
{
	struct pack k = { .v = v, .opt = opt, .file = file, .n_files = n };
	int rc = vv_enter_idle(v, "pack");

	if (rc)
		return rc;
	vv_tip_sweep(v); /* before any rank searches for content to refer to */
	rc = vv_enter_check_call(v, VV_GROUP_PACK, detail_of(file, n, opt));
	if (rc == 0 && !opt->stream_input)
		rc = check_names(file, n);
	if (rc == 0 && v->n_regions)
		rc = vv_err_set(VV_EINVAL, "pack: the session has regions of memory");
	if (rc == 0 && v->ctx.group && !opt->stream_input)
		rc = share(&k, file, n);
	k.coding = v->coding->codec != NULL;
	if (rc == 0) {
		bool async = v->ctx.async;

		vv_run_table_fini(v->view);
		v->ctx.async = false; /* the caller may delete the files when this returns */
		rc = write_epoch(&k);
		v->ctx.async = async;
		if (rc)
			vv_background_mark_reported(v);
	}
	if (rc == 0)
		rc = report(&k, out);
	vv_parent_files_free(k.parent);
	vv_file_set_close(&k.file_set);
	vv_similarity_key_free(k.similarity_key);
	vv_manifest_fini(&k.before);
	vv_other_ranks_index_fini(&k.others);
	vv_manifest_fini(&k.manifest);
	return vv_enter_leave(v, rc);
}

void vv_pack_report_fini(struct vv_pack_report *r)
{
	vv_manifest_fini(&r->manifest);
}
