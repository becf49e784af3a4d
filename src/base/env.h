/* Settings from the environment. A program may clear the environment before the first call that
 * reads a setting, so the values at load time can be kept. */
#ifndef VV_BASE_ENV_H
#define VV_BASE_ENV_H

/* Keeps the present variables of varve and of its stores for the lifetime of the process. */
void vv_env_keep(void);
/* The present value, else the kept one; NULL: none. */
const char *vv_env_get(const char *name);

#endif
