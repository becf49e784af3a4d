/* In place of the space of a device, where none was built in. */
#include "space/space.h"

const struct vv_space *vv_space_cuda(void)
{
	return NULL;
}
