# What is installed where (`make install`), and the Debian package (`make deb`).
#
# The prefix is where programs lie. Configuration is always in /etc/muster and data in
# /var/lib/muster: the units, the command line and the documentation name them.
include(GNUInstallDirs)

set(private_dir lib/muster) # programs that are not for people; src/cli/beside.c looks there
set(share_dir ${CMAKE_INSTALL_DATAROOTDIR}/muster)
set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/muster)
set(made ${CMAKE_BINARY_DIR}/package)
set(MUSTER_MAINTAINER "Muster maintainers <maintainers@muster.invalid>" CACHE STRING
    "Who is named as the maintainer of the Debian package")

# ── what the binary says of itself: manual pages and completions ───────────────────────────────

# made_by(FILE COMMAND...): a file that holds what the command prints.
function(made_by file)
  get_filename_component(folder ${made}/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${made}/${file} COMMAND ${ARGN} > ${made}/${file}.new
                     COMMAND ${CMAKE_COMMAND} -E rename ${made}/${file}.new ${made}/${file}
                     DEPENDS muster VERBATIM)
  set_property(GLOBAL APPEND PROPERTY made_files ${made}/${file})
endfunction()

# packed(FROM TO): the same as gzip wants to see it in a package: best, and without a date.
function(packed from to)
  add_custom_command(OUTPUT ${made}/${to} COMMAND gzip -9nc ${from} > ${made}/${to}
                     DEPENDS ${from} VERBATIM)
  set_property(GLOBAL APPEND PROPERTY made_files ${made}/${to})
endfunction()

made_by(muster.1 $<TARGET_FILE:muster> man 1)
made_by(muster.yaml.5 $<TARGET_FILE:muster> man 5)
made_by(completion.bash $<TARGET_FILE:muster> completion bash)
made_by(completion.zsh $<TARGET_FILE:muster> completion zsh)
made_by(completion.fish $<TARGET_FILE:muster> completion fish)
packed(${made}/muster.1 muster.1.gz)
packed(${made}/muster.yaml.5 muster.yaml.5.gz)
string(TIMESTAMP PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH when it is set
configure_file(packaging/deb/changelog.in ${made}/changelog @ONLY)
packed(${made}/changelog changelog.gz)
get_property(made_files GLOBAL PROPERTY made_files)
add_custom_target(package_files ALL DEPENDS ${made_files})

# ── files ──────────────────────────────────────────────────────────────────────────────────────

install(TARGETS muster DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS muster-shim arena DESTINATION ${private_dir})

# The prefix is only known when it is installed: cmake --install takes another, and so does CPack.
foreach(unit muster muster-agent)
  install(CODE "
    set(BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/packaging/systemd/${unit}.service.in\" \"${made}/${unit}.service\" @ONLY)
    file(INSTALL \"${made}/${unit}.service\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")")
endforeach()
install(FILES packaging/systemd/muster.sysusers DESTINATION lib/sysusers.d RENAME muster.conf)
install(FILES packaging/systemd/muster.tmpfiles DESTINATION lib/tmpfiles.d RENAME muster.conf)

install(FILES ${made}/muster.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${made}/muster.yaml.5.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES ${made}/completion.bash RENAME muster
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
# Debian's zsh looks for what packages bring in a folder of its own.
install(CODE "
  set(zsh site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(zsh vendor-completions)
  endif()
  file(INSTALL \"${made}/completion.zsh\" RENAME _muster
       DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/zsh/\${zsh}\")")
install(FILES ${made}/completion.fish RENAME muster.fish
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d)

install(FILES packaging/grafana/muster.json DESTINATION ${share_dir}/grafana)
install(FILES packaging/prometheus/muster.rules.yml DESTINATION ${share_dir}/prometheus)
# Games compile the SDK's sources into themselves, so they come as they are.
install(DIRECTORY sdk/ DESTINATION ${share_dir}/sdk PATTERN __pycache__ EXCLUDE)

install(FILES README.md DESTINATION ${doc_dir})
install(DIRECTORY docs/ DESTINATION ${doc_dir} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png"
        PATTERN examples EXCLUDE)
install(DIRECTORY examples docs/examples DESTINATION ${doc_dir} USE_SOURCE_PERMISSIONS)
install(FILES ${made}/changelog.gz DESTINATION ${doc_dir})
install(FILES packaging/deb/copyright DESTINATION ${doc_dir})
install(FILES packaging/deb/lintian-overrides RENAME muster
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides)

# What the operator may have changed is left alone.
function(install_once from to)
  get_filename_component(folder ${to} DIRECTORY)
  get_filename_component(name ${to} NAME)
  install(CODE "
    if(EXISTS \"\$ENV{DESTDIR}${to}\")
      message(STATUS \"Kept as it is: \$ENV{DESTDIR}${to}\")
    else()
      file(INSTALL \"${CMAKE_SOURCE_DIR}/${from}\" DESTINATION \"${folder}\" RENAME ${name}
           PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    endif()")
endfunction()
install_once(packaging/muster.yaml /etc/muster/muster.yaml)
install_once(packaging/muster-agent.default /etc/default/muster-agent)

# ── the Debian package ─────────────────────────────────────────────────────────────────────────

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${MUSTER_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "gets players onto the right game server")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Muster keeps a fleet of game servers alive, knows how loaded each one is,
gives a match or a player a place on the best of them, proves to the game
server that the player may enter, and never sells one place twice.
.
This package has the control plane (muster.service), the agent that starts
game servers on a host (muster-agent.service), the command line, the SDK for
game servers, a Grafana dashboard, and rules and alerts for Prometheus.")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Loaded when they are needed, so dpkg-shlibdeps does not see them: the command line needs libcurl,
# the control plane and the agent libarchive, too. (The agent's libzmq is the arena's as well, where
# it is seen.) NATS and PostgreSQL are the choice of few; who chooses one without its library is
# told its name.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "libarchive13, libcurl3-gnutls, systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libnats3.4, libpq5, prometheus, bash-completion")
configure_file(packaging/deb/conffiles ${made}/deb/conffiles COPYONLY)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${made}/deb/conffiles)
foreach(script postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/deb/${script})
endforeach()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
    GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
# /etc is not below the prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
include(CPack)
