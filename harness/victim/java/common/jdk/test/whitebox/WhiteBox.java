package jdk.test.whitebox;

import java.lang.reflect.Executable;

/**
 * The few natives of HotSpot's test interface that framestorm uses. HotSpot resolves {@link
 * #registerNatives} by this very class name (src/hotspot/share/prims/nativeLookup.cpp) and binds
 * the others by name and signature (prims/whitebox.cpp), with -XX:+WhiteBoxAPI and this class on
 * the boot class path only.
 */
public final class WhiteBox {
  public static native void registerNatives();

  public native boolean enqueueMethodForCompilation0(Executable method, int level, int entryBci);

  public native boolean isMethodCompiled0(Executable method, boolean isOsr);

  public native int getMethodCompilationLevel0(Executable method, boolean isOsr);

  public native void makeMethodNotCompilable0(Executable method, int level, boolean isOsr);

  public native int deoptimizeMethod0(Executable method, boolean isOsr);

  public native boolean testSetDontInlineMethod0(Executable method, boolean value);

  public native boolean testSetForceInlineMethod0(Executable method, boolean value);

  public native void clearMethodState0(Executable method);

  public native boolean isIntrinsicAvailable0(Executable method, Executable context, int level);

  public native void setBooleanVMFlag(String name, boolean value);

  public native Long getIntxVMFlag(String name);

  public native void setIntxVMFlag(String name, long value);
}
