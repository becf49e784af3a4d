/* XXH3 against values of the reference implementation (over the buffer of its own sanity check) and against the library itself, pieces against the
 * whole, SHA-256 digests, and the byte order in which digests are stored. All with each level of vector units that this machine has. */
#include "base/cpu.h"
#include "core/format/digest.h"
#include "support/gen.h"
#include "vv_test.h"
#include <sys/uio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static const struct {
	size_t n;
	uint64_t check, high, low;
} known[] = {
	{ 0, 0x2d06800538d394c2, 0x99aa06d3014798d8, 0x6001c324468d497f },
	{ 1, 0xc44bdff4074eecdb, 0xa6cd5e9392000f6a, 0xc44bdff4074eecdb },
	{ 2, 0x7a9978044cb8a8bb, 0x76750c3c7bf95668, 0x7a9978044cb8a8bb },
	{ 3, 0x54247382a8d6b94d, 0x20efc49ff02422ea, 0x54247382a8d6b94d },
	{ 4, 0xe5dc74bc51848a51, 0x970d585ac632bf8e, 0x2e7d8d6876a39fe9 },
	{ 5, 0xe4243f00720306bb, 0x62ed587687606b4e, 0x057c7ed2c01fa1d1 },
	{ 6, 0x27b56a84cd2d7325, 0x082afe0b8162d12a, 0x3e7039bdda43cfc6 },
	{ 8, 0x24ccc9acaa9f65e4, 0x47a7f080d82bb456, 0x64c69cab4bb21dc5 },
	{ 9, 0x14d5001c15dd3f2b, 0x564ef6078950d457, 0xed7ccbc501eb7501 },
	{ 12, 0xa713daf0dfbb77e7, 0x6e3efd8fc7802b18, 0x061a192713f69ad9 },
	{ 16, 0x981b17d36c7498c9, 0xc68c368ecf8a9c05, 0x562980258a998629 },
	{ 17, 0x796f5acd3a60f862, 0x955fa78643ed3669, 0xabbc12d11973d7db },
	{ 24, 0xa3fe70bf9d3510eb, 0x0ce966e4678d3761, 0x1e7044d28b1b901d },
	{ 31, 0x5d516692ca764c50, 0x301048a7ab476d21, 0xec8365e74dc00653 },
	{ 32, 0x9feaddbdbf57eed3, 0x98fc6458710dc2e8, 0x278410a17595e3f9 },
	{ 33, 0xabfb2d081b400a10, 0x3103c192ceaa2ded, 0xe593bc4e5914c9d1 },
	{ 48, 0x397da259ecba1f11, 0xa002ac4e5478227e, 0xf942219aed80f67b },
	{ 63, 0x83d74a75f2c2577a, 0x7fc0ae04a6d2bb0b, 0x5e4cb79e9a8121d9 },
	{ 64, 0x9cb48487720ec49d, 0x6d90e81a9b0fd622, 0xefdb6a44690721a9 },
	{ 65, 0xfd81aac4bebc3883, 0x6c074d65e54db85a, 0xfe2f650fa500ec6e },
	{ 80, 0xbcdefbbb2c47c90a, 0xfdf2cefde9eaac8a, 0x454ae6bf7a8a532d },
	{ 96, 0x935a769a7f94776f, 0xd9d0b885f56c93f1, 0xe9324473ea9afebe },
	{ 97, 0xca4ca268fd3c3a6c, 0x09dff37faa6b284c, 0x7c87228ae9671ba7 },
	{ 128, 0xfcff24126754d861, 0x39992220e045260a, 0xebb15e34a7fb5ab1 },
	{ 129, 0x98f1b0a679a2ca29, 0x03815fc91f1b30b6, 0x86c9e3bc8f0a3b5c },
	{ 160, 0x9d03a319ed4cbd2b, 0xba5d218964b622ad, 0x737126c8d7c09cee },
	{ 195, 0xcd94217ee362ec3a, 0x7729543a26b207ee, 0x3fb593c086a66075 },
	{ 239, 0x16ce2b9d3b28805d, 0xe59fc6554b5008bc, 0xf895e8b860b8a593 },
	{ 240, 0x81c3c2b67f568ccf, 0xaa4202daa2769dc8, 0x5c9aae94c8ebe5a0 },
	{ 241, 0xc5a639ecd2030e5e, 0x99a80ecf0ecfc647, 0xc5a639ecd2030e5e },
	{ 255, 0xe98f979f4ed8a197, 0x961375c87e09efbc, 0xe98f979f4ed8a197 },
	{ 256, 0x55de574ad89d0ac5, 0x8b1c66091423d288, 0x55de574ad89d0ac5 },
	{ 257, 0xb17fd5a8ae75bb0b, 0xf15fee7f9f457599, 0xb17fd5a8ae75bb0b },
	{ 403, 0xcdeb804d65c6dea4, 0x1b6de21e332dd73d, 0xcdeb804d65c6dea4 },
	{ 511, 0x8089715b163e7fc0, 0x9f7619cb8d250f0d, 0x8089715b163e7fc0 },
	{ 512, 0x617e49599013cb6b, 0x18d2d110dcc9bca1, 0x617e49599013cb6b },
	{ 513, 0xf7037d3b6722aeec, 0xf5c760ed98fd9e0a, 0xf7037d3b6722aeec },
	{ 1023, 0x87a8f7b2f2e22496, 0xe8083e4d83214c3c, 0x87a8f7b2f2e22496 },
	{ 1024, 0xdd85c9b5c1109c5c, 0x0d30d24071c64c57, 0xdd85c9b5c1109c5c },
	{ 1025, 0xd870c0fa13211c6a, 0xfd3ee4fe7f2954c6, 0xd870c0fa13211c6a },
	{ 2048, 0xdd59e2c3a5f038e0, 0xf736557fd47073a5, 0xdd59e2c3a5f038e0 },
	{ 2240, 0x6e73a90539cf2948, 0xccb134fbfa7ce49d, 0x6e73a90539cf2948 },
	{ 2367, 0xcb37aeb9e5d361ed, 0xe89c0f6ff369b427, 0xcb37aeb9e5d361ed },
	{ 4096, 0xe91206429d1f48f9, 0xb9cfaea2ca5626a4, 0xe91206429d1f48f9 },
	{ 4097, 0xdac80d543e339451, 0x0c6a7a5f1d0bbb1a, 0xdac80d543e339451 },
	{ 16384, 0xedd17b079a94769e, 0x035fd334e0a37a89, 0xedd17b079a94769e },
	{ 65536, 0x918f7f0f912ca480, 0xdeafbd9df07edb70, 0x918f7f0f912ca480 },
	{ 65537, 0xe42d29d5d26c06c2, 0x388e913ef5d18b4d, 0xe42d29d5d26c06c2 },
	{ 100000, 0x34d658192a014311, 0x351330331bc078fb, 0x34d658192a014311 },
};
enum { N_KNOWN = sizeof(known) / sizeof(known[0]), LONGEST = 100000 };

static uint8_t data[LONGEST];

static void make_data(void)
{
	uint64_t g = 2654435761u;

	for (size_t i = 0; i < LONGEST; i++, g *= 11400714785074694797ull)
		data[i] = (uint8_t)(g >> 56);
}

static void put_big_endian(uint64_t v, uint8_t *out)
{
	for (int i = 0; i < 8; i++)
		out[i] = (uint8_t)(v >> (56 - 8 * i));
}

static void test_known(void)
{
	for (size_t i = 0; i < N_KNOWN; i++) {
		uint8_t want[16];
		struct vv_digest d;

		put_big_endian(known[i].high, want);
		put_big_endian(known[i].low, want + 8);
		CHECK_EQ(vv_digest_check(data, known[i].n), known[i].check);
		vv_digest_xxh3(data, known[i].n, &d);
		CHECK(memcmp(&d, want, 16) == 0);
	}
}

/* Odd addresses: the chunks of a region lie anywhere. */
static void test_alignment(void)
{
	static uint8_t shifted[5000];

	for (size_t shift = 0; shift < 64; shift++)
		for (size_t i = 0; i < N_KNOWN && known[i].n <= 4097; i++) {
			memcpy(shifted + shift, data, known[i].n);
			CHECK_EQ(vv_digest_check(shifted + shift, known[i].n), known[i].check);
		}
}

static void check_pieces(size_t n, size_t a, size_t b, uint64_t check)
{
	struct iovec iov[3] = { { data, a }, { data + a, b - a }, { data + b, n - b } };
	struct vv_digest_stream s;

	vv_digest_stream_init(&s);
	for (int i = 0; i < 3; i++)
		vv_digest_stream_add(&s, iov[i].iov_base, iov[i].iov_len);
	CHECK_EQ(vv_digest_stream_check(&s), check);
	CHECK_EQ(vv_digest_stream_check(&s), check); /* asking changes nothing */
	CHECK_EQ(vv_digest_check_parts(iov, 3), check);
}

/* Every length up to a few of XXH3's internal buffers, cut at every place. */
static void test_splits(void)
{
	for (size_t n = 0; n <= 1100; n += n < 300 ? 1 : 61) {
		uint64_t check = vv_digest_check(data, n);

		for (size_t cut = 0; cut <= n; cut++)
			check_pieces(n, cut, cut, check);
	}
}

static void test_random_splits(void)
{
	uint64_t state = 1;

	for (int i = 0; i < 300; i++) {
		size_t n = (size_t)gen_below(&state, LONGEST), b = (size_t)gen_below(&state, n + 1);
		size_t a = (size_t)gen_below(&state, b + 1);

		check_pieces(n, a, b, vv_digest_check(data, n));
	}
}

static void test_parts(void)
{
	struct iovec one = { data, 1000 };

	CHECK_EQ(vv_digest_check_parts(&one, 1), vv_digest_check(data, 1000));
	CHECK_EQ(vv_digest_check_parts(&one, 0), vv_digest_check(data, 0));
	CHECK_EQ(vv_digest_check_parts(NULL, 0), 0x2d06800538d394c2);
}

/* One stream after another in the same memory, which was full of something else before. */
static void test_stream_again(void)
{
	struct vv_digest_stream s;

	memset(&s, 0xa5, sizeof(s));
	for (size_t i = 0; i < N_KNOWN; i++) {
		vv_digest_stream_init(&s);
		vv_digest_stream_add(&s, data, known[i].n);
		CHECK_EQ(vv_digest_stream_check(&s), known[i].check);
	}
}

static void test_kinds(void)
{
	static const struct {
		size_t n;
		const char *hex;
	} sha[] = {
		{ 0, "e3b0c44298fc1c149afbf4c8996fb924" },    { 1, "6e340b9cffb37a989ca544e6bb780a2c" },
		{ 55, "5b39a58741c0585914865dce2e4d3a36" },   { 64, "151818c81c5d18649d637e2c3ad20e39" },
		{ 4096, "8bff163859dbd76ff3e982eaf1fc1199" }, { 100000, "8bd9aaf89d1dabb422af39345b0ed060" },
	};

	CHECK(vv_digest_of_kind(VV_DIGEST_XXH3) == vv_digest_xxh3);
	CHECK(vv_digest_of_kind(0) == NULL);
	CHECK(vv_digest_of_kind(3) == NULL);
	CHECK(vv_digest_of_kind(257) == NULL);
	for (size_t i = 0; i < sizeof(sha) / sizeof(sha[0]); i++) {
		struct vv_digest d;
		uint8_t bytes[16];
		char hex[33];

		vv_digest_of_kind(VV_DIGEST_SHA256)(data, sha[i].n, &d);
		memcpy(bytes, &d, 16);
		for (int k = 0; k < 16; k++)
			snprintf(hex + 2 * k, 3, "%02x", bytes[k]);
		CHECK_STR(hex, sha[i].hex);
	}
}

static void test_equal(void)
{
	struct vv_digest a, b;

	vv_digest_xxh3("x", 1, &a);
	b = a;
	CHECK(vv_digest_equal(&a, &b));
	for (int bit = 0; bit < 128; bit++) {
		b = a;
		b.w[bit / 64] ^= 1ull << bit % 64;
		CHECK(!vv_digest_equal(&a, &b));
	}
}

static void by_library(const uint8_t *p, size_t n, struct vv_digest *digest, uint64_t *check)
{
	XXH128_canonical_t c;

	XXH128_canonicalFromHash(&c, XXH3_128bits(p, n));
	memcpy(digest, c.digest, sizeof(*digest));
	*check = XXH3_64bits(p, n);
}

/* Bytes of which one is another do not fit the digest, copied or not. */
static void other_bytes(uint8_t *p, size_t n, const struct vv_digest *want, uint8_t *to)
{
	CHECK(vv_digest_fits(p, n, want));
	for (size_t at = 0; at < n; at += 1 + n / 3) {
		p[at] ^= (uint8_t)(1 << at % 8);
		CHECK(!vv_digest_fits(p, n, want));
		CHECK(!vv_digest_fits_copy(to, p, n, p, want));
		CHECK(memcmp(to, p, n) == 0);
		p[at] ^= (uint8_t)(1 << at % 8);
	}
}

/* Hashed in one go, and on the way of a copy, for every length around the block sizes of XXH3. What is read next is only a hint: nowhere, elsewhere,
 * or right behind. */
static void copied(void)
{
	enum { MOST = 20000 };
	static uint8_t from[MOST + 16], to[MOST + 17];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 131 + (i >> 8) * 7);
	for (size_t n = 0; n <= MOST; n += n < 2200 ? 1 : 37) {
		const uint8_t *p = from + n % 16, *next[] = { NULL, from, p + n };
		struct vv_digest got, want;
		uint64_t check;

		by_library(p, n, &want, &check);
		vv_digest_xxh3(p, n, &got);
		CHECK(vv_digest_equal(&got, &want));
		CHECK_EQ(vv_digest_check(p, n), check);
		for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
			memset(to, 0xa5, sizeof(to));
			CHECK(vv_digest_fits_copy(to, p, n, next[i], &want));
			CHECK(memcmp(to, p, n) == 0);
			CHECK(to[n] == 0xa5);
		}
		other_bytes(from + n % 16, n, &want, to);
		memset(to, 0xa5, sizeof(to));
		CHECK_EQ(vv_digest_check_copy(to, p, n), check);
		CHECK(memcmp(to, p, n) == 0);
		CHECK(to[n] == 0xa5);
	}
}

/* Grains of all lengths that there are, and of others, at any address. */
static void test_grains(void)
{
	static const size_t chunks[] = { 1, 16, 17, 32, 64, 100, 128, 129, 240, 241, 255, 256, 257, 512, 1024, 1025, 2048, 4096 };
	enum { N = 9 };

	for (size_t k = 0; k < sizeof(chunks) / sizeof(chunks[0]); k++)
		for (size_t shift = 0; shift < 66; shift += 13) {
			struct vv_digest got[N + 1], want;
			uint64_t check;

			memset(got, 0x5a, sizeof(got));
			vv_digest_grains(VV_DIGEST_XXH3, data + shift, chunks[k], N, got);
			for (size_t i = 0; i < N; i++) {
				by_library(data + shift + i * chunks[k], chunks[k], &want, &check);
				CHECK(vv_digest_equal(&got[i], &want));
			}
			CHECK_EQ(got[N].w[0], 0x5a5a5a5a5a5a5a5a);
			vv_digest_grains(VV_DIGEST_SHA256, data + shift, chunks[k], N, got);
			vv_digest_of_kind(VV_DIGEST_SHA256)(data + shift + 3 * chunks[k], chunks[k], &want);
			CHECK(vv_digest_equal(&got[3], &want));
		}
}

/* What one level has begun another goes on with: they differ in nothing that is kept. */
static void test_stream_over_levels(void)
{
	struct vv_digest_stream s;
	uint64_t state = 5;

	for (int round = 0; round < 50; round++) {
		size_t at = 0, n = (size_t)gen_below(&state, 20000);

		vv_digest_stream_init(&s);
		for (size_t some; at < n; at += some) {
			some = 1 + (size_t)gen_below(&state, n - at);
			vv_cpu_hold((enum vv_cpu_level)gen_below(&state, VV_CPU_LEVELS));
			vv_digest_stream_add(&s, data + at, some);
		}
		CHECK_EQ(vv_digest_stream_check(&s), XXH3_64bits(data, n));
	}
}

int main(void)
{
	for (int level = VV_CPU_BASELINE; level <= (int)vv_cpu_most(); level++) {
		CHECK_EQ(vv_cpu_hold((enum vv_cpu_level)level), level);
		copied();
		make_data();
		test_known();
		test_alignment();
		test_splits();
		test_random_splits();
		test_parts();
		test_stream_again();
		test_kinds();
		test_equal();
		test_grains();
	}
	test_stream_over_levels();
	return 0;
}
