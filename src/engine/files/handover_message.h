/* A message of file stretches in memory, from one rank to the rank that places them
 * (engine/files/rank_handover.h). The receiver does not trust its bytes. */
#ifndef VV_ENGINE_FILES_HANDOVER_MESSAGE_H
#define VV_ENGINE_FILES_HANDOVER_MESSAGE_H

#include "engine/files/file_set.h"

struct vv_handover_message {
	uint64_t at, len;
	uint32_t file; /* its number at the owner */
	uint32_t kind; /* its number here */
};

struct vv_handover_messages { /* by file and offset, disjoint */
	struct vv_handover_message *v;
	size_t n, cap;
	uint64_t bytes; /* of all stretches */
};

int vv_handover_message_add(struct vv_handover_messages *p, struct vv_handover_message x);

/* A message is a head and the bytes that follow it. The file set holds these bytes. */
int vv_handover_message_put_head(const struct vv_handover_messages *p, const struct vv_file_set *c, struct vv_buf *out);
size_t vv_handover_message_data_len(const struct vv_handover_messages *p);
int vv_handover_message_put(const struct vv_handover_messages *p, const struct vv_file_set *c, const struct vv_buf *head, uint8_t *out);
/* p starts empty; the caller frees it even after an error. New kinds are added to the file set.
 * *bytes points into the message. VV_EPEER: not a valid message. */
int vv_handover_message_get(struct vv_handover_messages *p, struct vv_file_set *c, const struct vv_pack_options *opt, const uint8_t *message, size_t n, const uint8_t **bytes);

#endif
