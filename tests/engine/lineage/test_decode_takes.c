/* The memory that decoding a block takes: with a base it includes all bytes of the base, however long it is. */
#include "codec/codec.h"
#include "engine/lineage/layer_file.h"
#include "vv_test.h"

enum { RAW = 1 << 20, STORED = 1000 };

int main(void)
{
	struct vv_delta_base base[] = { { 1, 0, (uint64_t)VV_DELTA_BASES_TIMES * RAW }, { 2, 77, VV_DELTA_BASES_MORE } };
	struct vv_layer_file f = { 0 };

	CHECK_EQ(vv_payload_block_add(&f.blocks, VV_CODEC_NONE, RAW, RAW, 0), 0);
	CHECK_EQ(vv_payload_block_add(&f.blocks, VV_CODEC_DELTA, RAW, STORED, 0), 0);
	CHECK_EQ(vv_payload_block_add(&f.blocks, VV_CODEC_DELTA, RAW, STORED, 0), 0);
	CHECK_EQ(vv_payload_block_add(&f.blocks, VV_CODEC_TYPED, RAW, STORED, 0), 0);
	CHECK_EQ(vv_delta_bases_add(&f.blocks.bases, 1, base, 2), 0);
	CHECK_EQ(vv_delta_bases_add(&f.blocks.bases, 2, base, 1), 0);

	CHECK_EQ(vv_layer_file_decode_takes(&f, 0), 0);
	CHECK_EQ(vv_layer_file_decode_takes(&f, 3), vv_codec_decode_takes(VV_CODEC_TYPED, STORED, RAW));
	/* with a block of the base, its stored bytes and their planes */
	CHECK(vv_layer_file_decode_takes(&f, 1) >= base[0].len + base[1].len + 3 * (size_t)RAW);
	CHECK_EQ(vv_layer_file_decode_takes(&f, 1) - vv_layer_file_decode_takes(&f, 2), base[1].len);
	vv_payload_blocks_fini(&f.blocks);
	return 0;
}
