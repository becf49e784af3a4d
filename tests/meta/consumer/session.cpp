// The smallest user of the installed C++ header: prints the version.
#include <cstdio>
#include <varve/varve.hpp>

int main()
{
	varve::session s("mem:consumer", "a");
	int x = 1;

	s.protect("x", x);
	s.checkpoint();
	s.close();
	std::printf("%s\n", varve_version());
}
