/* SHA-256 against the examples of FIPS 180-4, HMAC against RFC 4231, and the same bytes however they are cut. */
#include "base/sha256.h"
#include "vv_test.h"

static void check_hash(const void *p, size_t n, const char *want)
{
	uint8_t digest[VV_SHA256_BYTES];
	char hex[VV_SHA256_HEX];

	vv_sha256_of(p, n, digest);
	vv_sha256_hex(digest, hex);
	CHECK_STR(hex, want);
}

static void test_fips(void)
{
	static uint8_t million[1000000];
	const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	const char *four = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
			   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";

	check_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_hash(two, strlen(two), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check_hash(four, strlen(four), "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
	memset(million, 'a', sizeof(million));
	check_hash(million, sizeof(million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length around the block and padding limits, cut at every position. */
static void test_splits(void)
{
	uint8_t data[200], whole[VV_SHA256_BYTES], parts[VV_SHA256_BYTES];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 11);
	for (size_t n = 0; n <= sizeof(data); n++) {
		vv_sha256_of(data, n, whole);
		for (size_t cut = 0; cut <= n; cut++) {
			struct vv_sha256 s;

			vv_sha256_init(&s);
			vv_sha256_update(&s, data, cut);
			vv_sha256_update(&s, data + cut, n - cut);
			vv_sha256_final(&s, parts);
			CHECK(memcmp(whole, parts, sizeof(whole)) == 0);
		}
	}
}

static void test_bytewise(void)
{
	uint8_t data[300], whole[VV_SHA256_BYTES], parts[VV_SHA256_BYTES];
	struct vv_sha256 s;

	memset(data, 0xa5, sizeof(data));
	vv_sha256_init(&s);
	for (size_t i = 0; i < sizeof(data); i++)
		vv_sha256_update(&s, data + i, 1);
	vv_sha256_final(&s, parts);
	vv_sha256_of(data, sizeof(data), whole);
	CHECK(memcmp(whole, parts, sizeof(whole)) == 0);
}

static void check_hmac(const void *key, size_t key_n, const void *p, size_t n, const char *want)
{
	uint8_t mac[VV_SHA256_BYTES];
	char hex[VV_SHA256_HEX];

	vv_sha256_hmac(key, key_n, p, n, mac);
	vv_sha256_hex(mac, hex);
	hex[strlen(want)] = '\0'; /* case 5 is given truncated */
	CHECK_STR(hex, want);
}

static void test_rfc4231(void)
{
	const char *block_key = "Test Using Larger Than Block-Size Key - Hash Key First";
	const char *both = "This is a test using a larger than block-size key and a larger than block-size data. "
			   "The key needs to be hashed before being used by the HMAC algorithm.";
	uint8_t key[131], data[50];

	memset(key, 0x0b, 20);
	check_hmac(key, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	check_hmac("Jefe", 4, "what do ya want for nothing?", 28,
		   "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, 20);
	memset(data, 0xdd, 50);
	check_hmac(key, 20, data, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	for (int i = 0; i < 25; i++)
		key[i] = (uint8_t)(i + 1);
	memset(data, 0xcd, 50);
	check_hmac(key, 25, data, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
	memset(key, 0x0c, 20);
	check_hmac(key, 20, "Test With Truncation", 20, "a3b6167473100ee06e0c796c2955552b");
	memset(key, 0xaa, 131);
	check_hmac(key, 131, block_key, strlen(block_key),
		   "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	check_hmac(key, 131, both, strlen(both), "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

/* The signer chains keys through one array. */
static void test_hmac_in_place(void)
{
	uint8_t key[VV_SHA256_BYTES], want[VV_SHA256_BYTES];

	memset(key, 7, sizeof(key));
	vv_sha256_hmac(key, sizeof(key), "x", 1, want);
	vv_sha256_hmac(key, sizeof(key), "x", 1, key);
	CHECK(memcmp(key, want, sizeof(key)) == 0);
}

int main(void)
{
	test_fips();
	test_splits();
	test_bytewise();
	test_rfc4231();
	test_hmac_in_place();
	return 0;
}
