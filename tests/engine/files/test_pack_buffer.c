// ctest: COST 2
/* A slab is read and cut piece by piece: into the chunks that all of it at once would give, wherever its parts and the pieces end. */
#include "engine/files/pack_buffer.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <unistd.h>

enum { ALL = 4 << 20, CHUNK = 4096, PIECE = 256 << 10 };

static uint8_t bytes[ALL], gathered[ALL];
static char path[PLACE_MAX];

/* Noise with stretches of zeros: shorter and longer than a piece, and across where pieces end. */
static void make_file(void)
{
	uint64_t state = 11;

	gen_bytes(&state, bytes, ALL);
	memset(bytes + PIECE - 1000, 0, 3000);
	memset(bytes + 2 * PIECE - 100000, 0, 200000);
	memset(bytes + 5 * PIECE, 0, 2 * PIECE + 12345);
	place_path(path, "file.bin");
	place_write(path, bytes, ALL);
}

/* What a slab of all its bytes must be. */
static void check_chunks(const struct vv_pack_buffer *s)
{
	size_t at = 0, i = 0;

	CHECK(memcmp(s->bytes, gathered, s->len) == 0);
	for (; at < s->len; at += s->chunks[i++].len) {
		struct vv_digest d;

		CHECK(i < s->n_chunks);
		CHECK_EQ(s->chunks[i].len, vv_file_set_cut(s->file_set, s->kind, s->chunk, gathered + at, s->len - at));
		CHECK_EQ(s->chunks[i].found, s->digest && vv_pack_buffer_is_zero(gathered + at, s->chunks[i].len) ? VV_PACK_BUFFER_ZERO : VV_PACK_BUFFER_NEW);
		if (!s->digest || s->chunks[i].found == VV_PACK_BUFFER_ZERO)
			continue;
		vv_digest_xxh3(gathered + at, s->chunks[i].len, &d);
		CHECK(vv_digest_equal(&d, &s->chunks[i].digest));
	}
	CHECK_EQ(at, s->len);
	CHECK_EQ(i, s->n_chunks);
}

static void add(struct vv_pack_buffer *s, uint64_t at, size_t n)
{
	memcpy(gathered + s->len, bytes + at, n);
	CHECK_EQ(vv_pack_buffer_add(s, (struct vv_pack_buffer_part){ 0, at, n }), 0);
}

static void run(struct vv_pack_buffer *s)
{
	s->task.run(&s->task);
	CHECK_EQ(s->rc, 0);
	check_chunks(s);
	s->len = s->n_parts = 0;
}

static void test_kind(const struct vv_file_set *c, struct vv_file_set_kind *k, vv_digest_fn digest)
{
	static const size_t lens[] = { 1, 100, CHUNK, 64 << 10, (64 << 10) + 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, ALL - 1, ALL };
	struct vv_pack_buffer *s = NULL;
	uint64_t state = 3;

	CHECK_EQ(vv_pack_buffer_new(c, CHUNK, digest, ALL, false, &s), 0);
	s->kind = k;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		add(s, ALL - lens[i], lens[i]);
		run(s);
	}
	for (int round = 0; round < 20; round++) { /* parts of all lengths, from all over the file */
		for (size_t most = 1 << (3 + round % 18), n = 0; s->len + n <= ALL && s->n_parts < 3000;) {
			if (n)
				add(s, gen_next(&state) % (ALL - n), n);
			n = 1 + gen_next(&state) % most;
		}
		run(s);
	}
	vv_pack_buffer_free(s);
}

/* It ends while it is being read, in the second piece. */
static void test_shorter(const struct vv_file_set *c)
{
	struct vv_pack_buffer *s = NULL;

	CHECK_EQ(vv_pack_buffer_new(c, CHUNK, vv_digest_xxh3, ALL, false, &s), 0);
	s->kind = &c->kind[VV_FILE_SET_SKELETON];
	add(s, 0, ALL);
	CHECK_EQ(truncate(path, PIECE + 1), 0);
	s->task.run(&s->task);
	CHECK_EQ(s->rc, VV_EBUSY);
	CHECK_EQ(vv_err_restore(&s->error), VV_EBUSY);
	CHECK(strstr(vv_err_last(), "became shorter"));
	vv_pack_buffer_free(s);
}

int main(void)
{
	const struct vv_file_set_options opt = { .segments = "heap=gear:64/256/1024,stack=gear:65536/131072/1048576,anon=rabin,code=pages:1048576" };
	static const uint8_t segments[] = { VV_SEGMENT_HEAP, VV_SEGMENT_STACK, VV_SEGMENT_ANON, VV_SEGMENT_CODE };
	struct vv_pack_file file = { path, "file.bin", false };
	struct vv_file_set_kind opaque = { .opaque = true }, numbers = { 0 };
	struct vv_file_set c;

	make_file();
	CHECK_EQ(vv_file_set_open(&file, 1, &opt, NULL, &c), 0);
	test_kind(&c, &opaque, vv_digest_xxh3);
	test_kind(&c, &opaque, NULL);
	test_kind(&c, &numbers, vv_digest_xxh3);
	for (size_t i = 0; i < sizeof(segments); i++) {
		struct vv_file_set_kind memory = { .segment = segments[i] };

		test_kind(&c, &memory, vv_digest_xxh3);
	}
	test_shorter(&c);
	vv_file_set_close(&c);
	return 0;
}
