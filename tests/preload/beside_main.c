/* For test_interpose.py: beside_main PLUGIN STORE, a program that knows nothing of varve and loads a plugin that does. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	int (*beside)(int, char **) = plugin ? (int (*)(int, char **))dlsym(plugin, "beside") : NULL;

	if (!beside) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	return beside(argc - 1, argv + 1);
}
