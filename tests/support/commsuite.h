/* What every communicator must do, whatever is behind it. */
#ifndef VV_TEST_COMMSUITE_H
#define VV_TEST_COMMSUITE_H

#include "comm/comm.h"

/* By all ranks together, with the same arguments: `rounds` operations of random kinds and lengths up to max_len a part, each
 * compared with what it must give. */
void commsuite_run(struct vv_comm *c, uint64_t seed, int rounds, size_t max_len);

#endif
