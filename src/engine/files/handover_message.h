/* Stretches of files in memory, on their way from one rank to another that is to place them (engine/files/rank_handover.h), as a message of bytes nobody trusts. */
#ifndef VV_ENGINE_FILES_HANDOVER_MESSAGE_H
#define VV_ENGINE_FILES_HANDOVER_MESSAGE_H

#include "engine/files/file_set.h"

struct vv_handover_message {
	uint64_t at, len;
	uint32_t file; /* the number that it has with its owner */
	uint32_t kind; /* the number that it has here */
};

struct vv_handover_messages { /* by file and place, disjoint */
	struct vv_handover_message *v;
	size_t n, cap;
	uint64_t bytes; /* of all */
};

int vv_handover_message_add(struct vv_handover_messages *p, struct vv_handover_message x);

/* A message is a head, and so many bytes besides, which the file set holds. */
int vv_handover_message_put_head(const struct vv_handover_messages *p, const struct vv_file_set *c, struct vv_buf *out);
size_t vv_handover_message_data_len(const struct vv_handover_messages *p);
int vv_handover_message_put(const struct vv_handover_messages *p, const struct vv_file_set *c, const struct vv_buf *head, uint8_t *out);
/* p starts empty, and is to be freed whatever comes of it; kinds that are new are the file set's then. *bytes are in the message. VV_EPEER: it cannot be one. */
int vv_handover_message_get(struct vv_handover_messages *p, struct vv_file_set *c, const struct vv_pack_options *opt, const uint8_t *message, size_t n, const uint8_t **bytes);

#endif
