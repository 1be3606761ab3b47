package framestorm.truth;

import java.util.HashSet;
import java.util.Set;
import java.util.function.IntConsumer;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Whether a method calls or loops: others run for a few instructions, are never callers, and are
 * left alone.
 */
final class Worth extends MethodVisitor {
  private final IntConsumer yes;
  private final Set<Label> passed = new HashSet<>();
  private boolean found;

  /** `yes` is called with the method's number of locals. */
  Worth(IntConsumer yes) {
    super(Opcodes.ASM9);
    this.yes = yes;
  }

  @Override
  public void visitMethodInsn(
      int opcode, String owner, String name, String type, boolean ofInterface) {
    // Every constructor calls Object's.
    found |= !(name.equals("<init>") && owner.equals("java/lang/Object"));
  }

  @Override
  public void visitInvokeDynamicInsn(
      String name, String type, Handle bootstrap, Object... arguments) {
    found = true;
  }

  @Override
  public void visitLabel(Label label) {
    passed.add(label);
  }

  @Override
  public void visitJumpInsn(int opcode, Label to) {
    found |= passed.contains(to);
  }

  @Override
  public void visitMaxs(int stack, int locals) {
    if (found) yes.accept(locals);
  }
}
